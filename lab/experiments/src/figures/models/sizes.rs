//! Published distributions of message sizes (REPS appendix E, Flowcut §III-B2).

use spray_fabric::limits::MAX_MESSAGE_BYTES;

use super::parameters::Parameters;
use crate::figures::measures::{Measures, named};
use crate::workload::{Distribution, Sizes};

/// Returns `percent`, the share of messages of at most `bytes`, and `mean_bytes`.
pub(super) fn sizes(parameters: &Parameters<'_>) -> Result<Measures, String> {
    let name = parameters.text("sizes")?;
    let sizes = Sizes::ALL.into_iter().find(|sizes| sizes.to_string() == name);
    let sizes = sizes.filter(|sizes| *sizes != Sizes::Uniform).ok_or_else(|| format!("there are no sizes `{name}`"))?;
    let (distribution, bytes) = (Distribution::published(sizes, MAX_MESSAGE_BYTES), parameters.number("bytes")?);
    let percent = 100.0 * distribution.share_up_to(bytes);
    Ok(named([("percent", percent), ("mean_bytes", distribution.mean_bytes())]))
}
