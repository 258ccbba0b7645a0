//! The rule of triggers and of connections, as tables.

use super::*;
