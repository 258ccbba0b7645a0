//! The receivers of RDMA NICs with real packets: a fabric that loses and one that reorders, with
//! DCQCN.

use spray_tests::{assert_sound, run, shared_turn, small};

fn scenario(receiver: &str, balancer: &str, rest: &str) -> spray_experiments::scenario::Scenario {
    let transport =
        format!("receiver = \"{receiver}\"\nbalancer = \"{balancer}\"\ncc = \"dcqcn\"\ngive_up_us = 200000\n");
    small("512 KiB", &format!("[queue]\ntrimming = false\nlimit = \"400 packets\"\n[transport]\n{transport}{rest}"))
}

#[test]
fn both_receivers_deliver_every_byte_over_lossy_links() {
    let Some(_turn) = shared_turn() else { return };
    let lossy = "[[link_event]]\nlink = \"leaf0-spine0\"\naction = \"loss\"\nprobability = 0.01\n\
                 [[link_event]]\nlink = \"leaf0-spine1\"\naction = \"loss\"\nprobability = 0.01\n";
    for receiver in ["go-back-n", "irn"] {
        let result = run(&scenario(receiver, "ecmp", lossy));
        assert_sound(&result);
        assert!(result.counted().0.retransmits > 0, "{receiver}: {:?}", result.counted());
        assert_eq!(result.counted().1.order.reordered, 0, "{receiver}: with one path");
    }
}

#[test]
fn reordering_causes_retransmissions_with_go_back_n() {
    let Some(_turn) = shared_turn() else { return };
    let slow = "[[link_event]]\nlink = \"leaf0-spine0\"\naction = \"rate\"\nfactor = 0.5\n";
    let back = run(&scenario("go-back-n", "ops", slow));
    let irn = run(&scenario("irn", "ops", &format!("[transport.irn]\nnacks = 4096\n{slow}")));
    for result in [&back, &irn] {
        assert_sound(result);
        let (reordered, unexpected) = (result.counted().1.order.reordered, result.counted().1.order.unexpected);
        assert!(unexpected > reordered && reordered > 0, "{:?}", result.counted());
    }
    assert!(back.counted().0.retransmits > 100, "{:?}", back.counted());
    assert!(irn.counted().0.retransmits < back.counted().0.retransmits / 10, "{:?}", irn.counted());
}
