//! Tests of congestion control.
