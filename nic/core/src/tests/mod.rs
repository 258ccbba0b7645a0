//! What tests of several modules share.

pub mod agenda;
