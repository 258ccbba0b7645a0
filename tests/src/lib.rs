//! Tests on real namespaces; see `tests/`.
