//! Sans-IO transport: path choice, congestion control, loss detection, sender and receiver.
#![no_std]
