//! Runs tasks that must end, for tests of waiting.

use imbrex_fs::{Executor, executor::SECOND_NS};

/// Returns the result of `task`; panics if it takes longer than `limit_ns`.
pub(crate) async fn within<T: 'static>(
    executor: &Executor,
    limit_ns: u64,
    task: impl Future<Output = T> + 'static,
) -> T {
    let (joined, until_ns) = (executor.spawn(task), executor.now_ns() + limit_ns);
    while executor.now_ns() < until_ns {
        if let Some(result) = joined.take() {
            return result;
        }
        executor.sleep(SECOND_NS / 100).await;
    }
    panic!("it waits for something that does not come");
}
