use spray_benches::net::Transport;

/// Name in options and JSON, description, and transport settings, `None` for bare frames.
pub const VARIANTS: [(&str, &str, Option<Transport>); 4] = [
    ("spray_4to1", "REPS connection, an ACK per 4 packets", ours(4, true)),
    ("spray_1to1", "REPS connection, an ACK per packet", ours(1, true)),
    (BARE, "bare AF_XDP frames, same path", None),
    ("spray_prompt", "REPS connection, an ACK per 4 packets, frames are not batched", ours(4, false)),
];
pub const BARE: &str = "bare";

const fn ours(ack_every: u32, coalesces: bool) -> Option<Transport> {
    Some(Transport { ack_every, coalesces })
}
