//! Tests, one module per concern. Each names the clauses of `docs/specs/wire.md` that it checks.

mod any;
mod etherparse;
mod exhaustive;
mod hostile;
mod literal;
mod round_trip;
mod samples;
mod sealed;
mod switch;
