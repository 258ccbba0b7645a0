//! Runs independent jobs in parallel.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs `job` for each number below `jobs`, on at most `threads` threads (fewer if the system
/// refuses to create them). Returns the results in the order of the numbers. `job` must depend on
/// its number alone, so that the results are deterministic.
///
/// # Errors
/// After an error no further jobs start; the error with the lowest number is returned.
pub fn run_parallel<T: Send, E: Send>(
    jobs: usize,
    threads: usize,
    job: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        for number in numbers.take_while(|number| *number < jobs) {
            let result = job(number);
            if result.is_err() {
                next.store(jobs, Ordering::Relaxed);
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
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
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_on_any_number_of_threads() {
        for threads in [0, 1, 2, 7, 100] {
            let squares = run_parallel(50, threads, |number| Ok::<_, ()>(number * number)).unwrap();
            assert!(squares.into_iter().eq((0..50).map(|number| number * number)));
        }
        assert_eq!(run_parallel(0, 3, Ok::<_, ()>), Ok(Vec::new()));
    }

    #[test]
    fn an_error_ends_the_sweep() {
        for threads in [1, 4] {
            let result = run_parallel(1000, threads, |number| if number == 3 { Err(number) } else { Ok(()) });
            assert_eq!(result, Err(3));
        }
    }
}
