//! Ultra Ethernet's NSCC and EQDS combined: window and credit (`docs/specs/nscc-eqds.md`).

use spray_wire::PullRequest;

use super::{AckInfo, CongestionControl, Eqds, EqdsConfig, LossCause, Now, Nscc, NsccConfig, Path, Scheme};

/// The window of NSCC for the fabric, the credit of EQDS for the receiver's link.
#[derive(Clone, Debug)]
pub struct NsccEqds {
    window: Nscc,
    credit: Eqds,
}

impl Scheme for NsccEqds {
    type Config = (NsccConfig, EqdsConfig);

    const STATE_BYTES: usize = Nscc::STATE_BYTES + Eqds::STATE_BYTES;

    fn share((window, credit): &Self::Config, count: u64) -> Self::Config {
        (Nscc::share(window, count), Eqds::share(credit, count))
    }

    fn make((window, credit): &Self::Config, path: &Path) -> Self {
        Self { window: Nscc::make(window, path), credit: Eqds::make(credit, path) }
    }
}

//= docs/specs/nscc-eqds.md#NSE-1 window and credit
impl CongestionControl for NsccEqds {
    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo) {
        self.window.on_ack(now, ack);
        self.credit.on_ack(now, ack);
    }

    //= docs/specs/nscc-eqds.md#NSE-3 trimmed by the last port
    fn on_loss(&mut self, now: Now<'_>, bytes: u32, cause: LossCause) {
        if !self.window.adapt_to_loss(now, bytes, cause) && cause != LossCause::TrimmedLast {
            self.window.decrease_by(bytes);
        }
        self.credit.on_loss(now, bytes, cause);
    }

    fn on_go_back(&mut self, bytes: u32) {
        self.window.on_go_back(bytes);
        self.credit.on_go_back(bytes);
    }

    fn on_send(&mut self, now: Now<'_>, bytes: u32) {
        self.window.on_send(now, bytes);
        self.credit.on_send(now, bytes);
    }

    fn window_bytes(&self, path: &Path) -> u64 {
        self.window.window_bytes(path)
    }

    fn on_start(&mut self, path: &Path) {
        self.window.on_start(path);
    }

    fn uses_credit(&self) -> bool {
        true
    }

    fn has_credit(&self) -> bool {
        self.credit.has_credit()
    }

    fn on_queued(&mut self, path: &Path, bytes: u64, idle: bool) {
        self.credit.on_queued(path, bytes, idle);
    }

    fn on_pull(&mut self, path: &Path, credit_bytes: u64) -> bool {
        self.credit.on_pull(path, credit_bytes)
    }

    //= docs/specs/nscc-eqds.md#NSE-2 requests limited by the window
    fn poll_request(&mut self, path: &Path, again: bool) -> Option<PullRequest> {
        let most = self.window.window_bytes(path).saturating_add(path.packet_bytes.into());
        self.credit.poll_request_within(path, most, again)
    }
}
