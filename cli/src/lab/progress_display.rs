//! Progress of runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use spray_experiments::engine;
use spray_tools::info;
use spray_tools::progress::{Progress, now};

/// Shows the progress within a run if runs go one at a time, otherwise the completed runs.
pub struct ProgressDisplay {
    progress: Mutex<Progress>,
    begun: Instant,
    ended: AtomicUsize,
    /// Runs with written results, including those of earlier commands.
    done: AtomicUsize,
    /// Runs of earlier commands.
    before: usize,
    jobs: usize,
    live: bool,
}

impl ProgressDisplay {
    pub fn new(jobs: usize, before: usize, live: bool) -> Self {
        let (ended, done) = (AtomicUsize::new(0), AtomicUsize::new(before));
        Self { progress: Mutex::new(Progress::on_stderr()), begun: now(), ended, done, before, jobs, live }
    }

    pub fn count(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Returns `, about 2m left`, extrapolated from ended runs; empty without ended or open ones.
    fn left(&self) -> String {
        let ended = self.ended.load(Ordering::Relaxed);
        let open = self.jobs.saturating_sub(self.before + ended);
        if ended == 0 || open == 0 {
            return String::new();
        }
        let seconds = now().duration_since(self.begun).as_secs_f64() / ended as f64 * open as f64;
        format!(", about {} left", humantime::format_duration(Duration::from_secs(seconds.ceil() as u64)))
    }

    /// Begins a run; returns its label, as in `[3/9] silent uplink, reps`.
    pub fn begin(&self, number: usize, title: &str) -> String {
        let label = format!("[{}/{}] {title}", number + 1, self.jobs);
        if self.live {
            self.with(|progress| progress.phase(&format!("{label}{}", self.left())));
        }
        label
    }

    /// `label` is empty for progress of no run.
    pub fn on_progress(&self, label: &str, news: &engine::Progress) {
        use engine::Progress as News;
        let colon = if label.is_empty() { "" } else { ": " };
        self.with(|progress| match news {
            News::Phase(text) => progress.phase(&format!("{label}{colon}{text}")),
            News::Notice(text) => {
                progress.clear();
                info!("spray: {label}{colon}{text}");
            }
            News::Running { time_us, delivered_bytes, total_bytes, flows_completed, flows_total } => {
                let percent = *delivered_bytes as f64 * 100.0 / (*total_bytes).max(1) as f64;
                progress.update(|| {
                    format!("{label}: {percent:.0} % delivered, {flows_completed}/{flows_total} flows, {time_us:.0} us")
                });
            }
            _ => {}
        });
    }

    pub fn end(&self, title: &str, summary: &str) {
        let count = self.before + self.ended.fetch_add(1, Ordering::Relaxed) + 1;
        if self.live {
            return;
        }
        self.with(|progress| progress.update(|| format!("[{count}/{}] {title}: {summary}{}", self.jobs, self.left())));
    }

    fn with(&self, tell: impl FnOnce(&mut Progress)) {
        tell(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
