//! Tests of the whole crate, by concern. Each test names the clauses of `docs/specs/wire.md` it checks.

mod any;
mod etherparse;
mod exhaustive;
mod hostile;
mod literal;
mod round_trip;
mod samples;
mod sealed;
mod switch;
