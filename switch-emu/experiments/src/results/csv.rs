//! `flows.csv`, `ports.csv` and `events.csv`. Times are microseconds. A field that does not apply is empty.

use std::fmt::{self, Write};

use spray_fabric::PortOutcome;

use super::{EventRow, FlowResult, us};

pub(super) fn flows(flows: &[FlowResult]) -> String {
    let mut out =
        String::from("flow,src,dst,bytes,start_us,end_us,fct_us,retransmits,reordered,drained_us,unexpected,degrees\n");
    for f in flows {
        let (end, fct) = (Time(f.end_us), Time(f.fct_us));
        let head = format_args!("{},{},{},{},{}", f.flow, Text(&f.src), Text(&f.dst), f.bytes, Time(Some(f.start_us)));
        let drained = Time(Some(f.drained_us));
        let order = format_args!("{},{}", f.unexpected, Counts(f.degrees.counts()));
        line(&mut out, format_args!("{head},{end},{fct},{},{},{drained},{order}", f.retransmits, f.reordered));
    }
    out
}

pub(super) fn ports(ports: &[PortOutcome]) -> String {
    let mut out = String::from(
        "port,uplink,rate_gbps,frames,bytes,control_frames,ecn_marks,trims,drops_queue,drops_link,drops_random,drops_ttl,\
         queue_max_bytes,queue_mean_bytes,layer,pauses,paused_us\n",
    );
    for p in ports {
        let (c, rate_gbps) = (&p.counters, p.rate_bps as f64 / 1e9);
        let head = format_args!("{},{},{rate_gbps},{},{}", Text(&p.name), p.uplink, c.frames, c.bytes);
        let fates = format_args!("{},{},{},{}", c.control_frames, c.marks, c.trims, c.drops_queue);
        let losses = format_args!("{},{},{}", c.drops_link(), c.drops_random, c.drops_ttl);
        let queue = format_args!("{},{:.3},{}", c.queue_max, p.queue_mean_bytes, Text(&p.layer));
        let pauses = format_args!("{},{:.3}", p.pauses, us(p.paused_ps));
        line(&mut out, format_args!("{head},{fates},{losses},{queue},{pauses}"));
    }
    out
}

pub(super) fn events(events: &[EventRow]) -> String {
    let mut out = String::from("time_us,kind,subject,detail\n");
    for e in events {
        let (time, subject, detail) = (Time(Some(e.time_us)), Text(&e.subject), Text(&e.detail));
        line(&mut out, format_args!("{time},{},{subject},{detail}", e.kind));
    }
    out
}

fn line(out: &mut String, line: fmt::Arguments<'_>) {
    writeln!(out, "{line}").expect("a String takes everything");
}

/// A time, rounded to nanoseconds; empty for one that never came.
struct Time(Option<f64>);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |us| write!(f, "{us:.3}"))
    }
}

/// Counts, with spaces between them.
struct Counts<'a>(&'a [u64]);

impl fmt::Display for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, count)| write!(f, "{}{count}", if at > 0 { " " } else { "" }))
    }
}

/// Quotes a field if it holds a comma, a quote or a line break (RFC 4180).
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains([',', '"', '\n', '\r']) {
            write!(f, "\"{}\"", self.0.replace('"', "\"\""))
        } else {
            f.write_str(self.0)
        }
    }
}
