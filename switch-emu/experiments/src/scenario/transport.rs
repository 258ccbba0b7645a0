//! The transport's table.

use spray_core::cc::{CcKind, CcSchemes};
use spray_core::flow::DEFAULT_SACK_GAP_PACKETS;
use spray_core::loss::SackRule;
use spray_core::path::{BalancerKind, RepsConfig, Schemes};

use super::Transport;
use super::error::ScenarioError;
use super::reader::Table;

/// Largest IP packet that native XDP on veth carries in one page.
pub(crate) const MAX_IP_BYTES: u32 = 3_498;

impl Default for Transport {
    fn default() -> Self {
        Self {
            balancers: vec![BalancerKind::Reps],
            cc: CcKind::Dctcp,
            fixed_bps: None,
            initial_window_bytes: None,
            max_window_bytes: None,
            v6: false,
            payload_bytes: 3_000,
            frames: None,
            ack_every: 1,
            ack_evs: 1,
            published_acks: false,
            ack_delay_ps: None,
            evs: 65_535,
            window_packets: 4_096,
            sack_gap_packets: Some(DEFAULT_SACK_GAP_PACKETS),
            sack_rule: SackRule::Patient,
            erasure: false,
            rto_min_ps: None,
            rto_max_ps: None,
            give_up_ps: 20_000_000_000,
            schemes: Schemes::DEFAULT,
            cc_schemes: CcSchemes::DEFAULT,
        }
    }
}

pub(super) fn transport(table: Option<Table<'_>>) -> Result<Transport, ScenarioError> {
    let default = Transport::default();
    let Some(table) = table else { return Ok(default) };
    let mut transport = Transport {
        balancers: balancers(&table)?.unwrap_or(default.balancers),
        cc: cc(&table)?.unwrap_or(default.cc),
        fixed_bps: table.rate("fixed_gbps")?,
        initial_window_bytes: table.bytes("initial_window_bytes")?,
        max_window_bytes: table.bytes("max_window_bytes")?,
        v6: table.choice("ip")? == Some("6"),
        frames: None,
        payload_bytes: table.integer("payload_bytes")?.map_or(default.payload_bytes, |bytes| bytes as u32),
        ack_every: table.integer("ack_every")?.map_or(default.ack_every, |packets| packets as u32),
        ack_evs: table.integer("ack_evs")?.map_or(default.ack_evs, |evs| evs as u32),
        published_acks: false,
        ack_delay_ps: table.time("ack_delay_us")?,
        evs: table.integer("evs")?.map_or(default.evs, |evs| evs as u32),
        window_packets: table.integer("window_packets")?.map_or(default.window_packets, |packets| packets as u32),
        sack_gap_packets: match table.integer("sack_gap_packets")? {
            None => default.sack_gap_packets,
            Some(packets) => (packets > 0).then_some(packets as u32),
        },
        sack_rule: table.choice("sack_rule")?.and_then(SackRule::named).unwrap_or(default.sack_rule),
        erasure: table.flag("erasure")?.unwrap_or(default.erasure),
        rto_min_ps: table.time("rto_min_us")?,
        rto_max_ps: table.time("rto_max_us")?,
        give_up_ps: table.time("give_up_us")?.unwrap_or(default.give_up_ps),
        schemes: Schemes { reps: reps(&table)?, ..default.schemes },
        cc_schemes: default.cc_schemes,
    };
    transport.set_params(&table.settings("params")?)?;
    check(&table, &transport)?;
    Ok(transport)
}

/// Checks what depends on more than one field.
fn check(table: &Table<'_>, transport: &Transport) -> Result<(), ScenarioError> {
    let headers = spray_wire::header_bytes(transport.v6, spray_wire::Kind::Data) as u32 - ETHERNET_BYTES;
    let most = MAX_IP_BYTES - headers;
    if transport.payload_bytes > most {
        let message = format!("`payload_bytes` is {}; allowed: at most {most} here", transport.payload_bytes);
        return Err(table.error("payload_bytes", message));
    }
    if !transport.window_packets.is_power_of_two() {
        let message = format!("`window_packets` is {}; allowed: powers of two", transport.window_packets);
        return Err(table.error("window_packets", message));
    }
    if transport.rto_max_ps.zip(transport.rto_min_ps).is_some_and(|(max, min)| max < min) {
        return Err(table.error("rto_max_us", "`rto_max_us` is below `rto_min_us`; allowed: not below"));
    }
    if transport.give_up_ps == 0 {
        return Err(table.error("give_up_us", "`give_up_us` is 0; allowed: above 0"));
    }
    Ok(())
}

const ETHERNET_BYTES: u32 = 14;

fn balancers(table: &Table<'_>) -> Result<Option<Vec<BalancerKind>>, ScenarioError> {
    let Some(words) = table.words("balancer")? else { return Ok(None) };
    let parse = |(word, span): (&str, std::ops::Range<usize>)| {
        let allowed = table.allowed("balancer");
        word.parse().map_err(|_| table.source.error(&span, format!("unknown balancer `{word}`; allowed: {allowed}")))
    };
    words.into_iter().map(parse).collect::<Result<Vec<_>, _>>().map(Some)
}

fn cc(table: &Table<'_>) -> Result<Option<CcKind>, ScenarioError> {
    // The table of fields lists the same names that `CcKind` takes.
    Ok(table.choice("cc")?.and_then(|name| name.parse().ok()))
}

fn reps(table: &Table<'_>) -> Result<RepsConfig, ScenarioError> {
    let mut reps = match table.choice("reps_variant")? {
        Some("artifact") => RepsConfig::artifact(),
        Some("ultra-ethernet") => RepsConfig::ultra_ethernet(),
        _ => RepsConfig::paper(),
    };
    if let Some(freezing_timeout_ps) = table.time("freezing_timeout_us")? {
        reps.freezing_timeout_ps = freezing_timeout_ps;
    }
    if let Some(buffer) = table.integer("reps_buffer")? {
        reps.buffer = buffer as u8;
    }
    reps.probe_interval_ps = table.time("probe_us")?.filter(|interval| *interval > 0);
    Ok(reps)
}
