//! Frame layouts of the spray transport: checked views and builders, no_std.
#![no_std]
