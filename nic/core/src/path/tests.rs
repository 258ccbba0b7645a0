//! Tests of path choice.
