//! Several runs at once: one per core, or a given number.

use rayon::prelude::*;

use crate::error::Failure;

/// Calls `work` with the index (from 0) and the value of each of `items`, at most `jobs` at a time (`None`: one per
/// core). Returns the results in the order of the items. All items are processed even if one fails.
///
/// With `jobs` of 1, everything runs on the calling thread. Work that itself runs in parallel may therefore call this
/// function, with one job. With more jobs, a thread of the outer pool that waits for the inner one would start its next
/// item, nested in the current one.
///
/// # Errors
///
/// The first failure of `work` in the order of the items, or if the threads cannot be started.
pub fn of_each<T: Sync, R: Send>(
    items: &[T],
    jobs: Option<u32>,
    work: impl Fn(usize, &T) -> Result<R, Failure> + Sync + Send,
) -> Result<Vec<R>, Failure> {
    if jobs == Some(1) {
        let done: Vec<_> = items.iter().enumerate().map(|(index, item)| work(index, item)).collect();
        return done.into_iter().collect();
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.map_or(0, |jobs| (jobs as usize).clamp(1, items.len().max(1))));
    let pool = pool.build().map_err(|error| Failure::failed(format!("no threads to run on: {error}")))?;
    // One item per thread at a time: the durations of runs differ by orders of magnitude, so items are not assigned in
    // advance.
    let done: Vec<Result<R, Failure>> =
        pool.install(|| items.par_iter().enumerate().with_max_len(1).map(|(index, item)| work(index, item)).collect());
    done.into_iter().collect()
}

/// Returns the number of runs at the same time: `jobs`, or the number of cores for `None`; at least 1.
pub fn at_once(jobs: Option<u32>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
    jobs.map_or_else(cores, |jobs| jobs as usize).max(1)
}

/// Calls `work` with the index (from 0) and the value of each of `items`, each in a thread of its own, all at once.
/// Returns the results in the order of the items. `work` has to limit the number of threads that run, for example by
/// [`super::shared`].
///
/// # Errors
///
/// The first failure of `work` in the order of the items.
///
/// # Panics
///
/// If `work` panics for an item.
pub fn together<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(usize, T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let work = &work;
    let done: Vec<Result<R, Failure>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            items.into_iter().enumerate().map(|(index, item)| scope.spawn(move || work(index, item))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    done.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_together_stands_in_order_too() {
        let barrier = std::sync::Barrier::new(3);
        let done = together(vec![3, 1, 2], |index, item| {
            // The barrier opens only when all three threads run.
            barrier.wait();
            Ok((index, item))
        });
        assert_eq!(done.expect("none fails"), [(0, 3), (1, 1), (2, 2)]);
        let failing = together(vec![1, 2], |_, item| match item {
            1 => Ok(()),
            item => Err(Failure::failed(format!("{item} is of no use"))),
        });
        assert_eq!(failing.expect_err("one fails").message, "2 is of no use");
    }

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

    #[test]
    fn work_that_does_several_things_one_by_one_is_ended_before_its_thread_begins_the_next() {
        use std::cell::Cell;
        thread_local!(static DEPTH: Cell<u32> = const { Cell::new(0) });
        let items: Vec<u32> = (0..200).collect();
        let deepest = of_each(&items, Some(2), |_, _| {
            let depth = DEPTH.get() + 1;
            DEPTH.set(depth);
            of_each(&[1, 2], Some(1), |_, _| {
                std::thread::sleep(std::time::Duration::from_micros(100));
                Ok(())
            })?;
            DEPTH.set(depth - 1);
            Ok(depth)
        });
        assert_eq!(deepest.expect("none fails").into_iter().max(), Some(1));
    }
}
