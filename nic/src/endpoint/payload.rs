//! The bytes of messages.

pub(crate) mod buffers;
pub(crate) mod in_place;
pub(crate) mod pages;
