//! Cost of EQDS per packet: the receiving host's pull, and the sender's reaction.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use spray_core::Time;
use spray_core::cc::{AnyCc, CcKind, CongestionControl, CreditBound, EqdsConfig, Path, PullPacer};

const BASE_RTT_PS: u64 = 8_337_000;
const LINK_BPS: u64 = 400_000_000_000;
const PACKET: u32 = 4_150;

criterion_group!(benches, credit);
criterion_main!(benches);

fn credit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("credit");
    for senders in [1, 16, 4_096] {
        group.bench_function(format!("pull, {senders} senders"), |bencher| {
            let mut pacer = PullPacer::new(LINK_BPS, EqdsConfig::default().pull_rate);
            for owner in 0..senders {
                let entry = pacer.open(owner, PACKET.into(), CreditBound::NONE);
                pacer.on_target(Time::ZERO, entry, u64::MAX);
            }
            bencher.iter(|| {
                let at = pacer.poll_timeout().unwrap_or(Time::ZERO);
                black_box(pacer.poll_pull(at))
            });
        });
    }
    group.bench_function("packet on a pull's credit", |bencher| {
        let path = Path::new(BASE_RTT_PS, LINK_BPS, PACKET);
        let mut cc = AnyCc::new(&CcKind::Eqds.into(), &path);
        cc.on_queued(&path, 1 << 60, true);
        let mut credit_bytes = 0;
        bencher.iter(|| {
            credit_bytes += u64::from(PACKET);
            cc.on_pull(&path, black_box(credit_bytes));
            black_box(cc.poll_request(&path, false));
            if cc.has_credit() {
                cc.on_send(path.at(Time::ZERO), PACKET);
            }
        });
    });
    group.finish();
}
