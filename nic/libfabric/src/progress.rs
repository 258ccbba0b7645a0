//! Progress thread, which drives the endpoint while the application makes no calls.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use spray_nic::sys::{monotonic_ns, poll_fd, wait_readable};

use crate::shared::Domain;

/// Time without calls after which the thread takes over.
const AWAY: Duration = Duration::from_millis(1);
/// Maximum sleep without pending work, and so the maximum delay of the thread's end.
const NAP: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Progress {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    pub(crate) fn start(domain: &Arc<Domain>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (domain, stopped) = (Arc::downgrade(domain), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("spray-progress".into()).spawn(move || run(&domain, &stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic has been reported already.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

fn run(domain: &Weak<Domain>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed)
        && let Some(domain) = domain.upgrade()
    {
        let polled = domain.try_with(|engine| {
            let is_away = monotonic_ns().saturating_sub(engine.attended_ns()) >= AWAY.as_nanos() as u64;
            is_away.then(|| (engine.wake_fd(), engine.progress(false)))
        });
        let (fd, longest) = match polled.flatten() {
            Some((fd, due_ns)) => (fd, NAP.min(Duration::from_nanos(due_ns))),
            None => (None, AWAY),
        };
        drop(domain);
        let mut fds: Vec<_> = fd.map(poll_fd).into_iter().collect();
        wait_readable(&mut fds, longest);
    }
}
