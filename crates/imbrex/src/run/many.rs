//! Several runs at once: as many as there are cores, or as are allowed.

use rayon::prelude::*;

use crate::error::Failure;

/// What `work` makes of each of `items`, in their order; `jobs` at a time, or as many as there are cores. The first
/// failure, by that order, is the outcome of all.
pub fn of_each<T: Sync, R: Send>(
    items: &[T],
    jobs: Option<u32>,
    work: impl Fn(usize, &T) -> Result<R, Failure> + Sync + Send,
) -> Result<Vec<R>, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.map_or(0, |jobs| jobs as usize));
    let pool = pool.build().map_err(|error| Failure::failed(format!("no threads to run on: {error}")))?;
    // One item a thread at a time: runs differ by orders of magnitude, so none is bound to another.
    let done: Vec<Result<R, Failure>> =
        pool.install(|| items.par_iter().enumerate().with_max_len(1).map(|(index, item)| work(index, item)).collect());
    done.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_items_and_the_first_failure_counts() {
        let doubled = of_each(&[3_u32, 1, 2], Some(2), |index, item| Ok((index, item * 2)));
        assert_eq!(doubled.expect("none fails"), [(0, 6), (1, 2), (2, 4)]);
        let failing = of_each(&[1, 2, 3], None, |_, item| match item {
            1 => Ok(()),
            item => Err(Failure::failed(format!("{item} is of no use"))),
        });
        assert_eq!(failing.expect_err("two fail").message, "2 is of no use");
    }
}
