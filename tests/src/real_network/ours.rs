//! Two concurrent transfers of `spray send` over the same routers, and the rates of both.
#![expect(clippy::disallowed_methods, reason = "how long real transfers take is what is measured")]

use std::path::Path;
use std::time::{Duration, Instant};

use crate::routers::Routers;
use spray_switch::RunError;

use super::{Out, PATIENCE, receiver, sender};
use crate::running::Running;

/// The time before the transfers are measured, in which their rates converge.
const SETTLING: Duration = Duration::from_secs(1);

/// Transfers the file at `path` twice at the same time, from two interfaces of the sending host;
/// the second must have been added to `routers` ([`Routers::add_interface`]). Returns the rates of
/// their packets while both transfer, in Mb/s with all headers; `None` if one failed, or ended
/// before it could be measured.
///
/// # Errors
/// If a program does not start, or a counter cannot be read.
pub fn two_transfers(routers: &Routers, spray: &Path, path: &Path) -> Result<Option<[f64; 2]>, RunError> {
    let failed = |error| RunError::io("running spray", error);
    routers.heal()?;
    let out = Out::new().map_err(failed)?;
    let _receiver = receiver(routers, spray, &out, &["--keep".into()])?;
    let other = path.with_extension("other");
    std::fs::copy(path, &other).map_err(failed)?;
    let start = |interface, file| sender(routers, spray, file, interface, &[]);
    let mut senders = [start(Routers::INTERFACE, path)?, start(Routers::SECOND, &other)?];
    std::thread::sleep(SETTLING);
    let (before, since) = (routers.received_bytes()?, Instant::now());
    let mut during = None;
    while senders.iter_mut().all(Running::is_running) && since.elapsed() < PATIENCE {
        during = Some((routers.received_bytes()?, since.elapsed().as_secs_f64()));
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended_well = senders.iter_mut().map(Running::end).all(|status| status.success());
    let rates = during.map(|(after, seconds)| {
        let rate = |of: usize| (after[of] - before[of]) as f64 * 8.0 / seconds / 1e6;
        [rate(0), rate(1)]
    });
    Ok(rates.filter(|_| ended_well))
}
