//! Many runs over the cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `job` for every number below `jobs`, on `threads` threads at once, or on fewer where the system has no more, each job on one; results are in the order of
/// their numbers, whichever thread they came from. A job's error ends what has not begun; the first one in order counts.
///
/// `job` must depend on its number alone: then so do the results.
pub fn over_cores<T: Send, E: Send>(
    jobs: usize,
    threads: usize,
    job: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<T, E>>>> = Mutex::new((0..jobs).map(|_| None).collect());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= jobs {
                return;
            }
            let result = job(number);
            if result.is_err() {
                next.store(jobs, Ordering::Relaxed);
            }
            let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            done[number] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, jobs.max(1)) {
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    // What an error kept from beginning is left out; the error itself is always there.
    done.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_on_any_number_of_threads() {
        for threads in [0, 1, 2, 7, 100] {
            let squares = over_cores(50, threads, |number| Ok::<_, ()>(number * number)).unwrap();
            assert!(squares.into_iter().eq((0..50).map(|number| number * number)));
        }
        assert_eq!(over_cores(0, 3, Ok::<_, ()>), Ok(Vec::new()));
    }

    #[test]
    fn an_error_ends_it() {
        for threads in [1, 4] {
            let result = over_cores(1000, threads, |number| if number == 3 { Err(number) } else { Ok(()) });
            assert_eq!(result, Err(3));
        }
    }
}
