//! Sender and receiver of one connection.
