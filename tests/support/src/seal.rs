use spray_wire::{Seal, TAG_BYTES};

/// Writes fixed tags that no key verifies, and leaves the payload unencrypted. All bytes of the
/// header's tag differ.
#[derive(Clone, Copy, Debug)]
pub struct AnySeal;

impl Seal for AnySeal {
    fn header(&self, _covered: &[u8]) -> [u8; TAG_BYTES] {
        std::array::from_fn(|at| at as u8 + 1)
    }

    fn payload(&self, _covered: &[u8], _payload: &mut [u8]) -> [u8; TAG_BYTES] {
        [0xaa; TAG_BYTES]
    }
}
