//! Big-endian fields of a header of known size. The length is checked once, when the array is
//! taken; offsets are checked at compile time, so that no getter can panic.

use crate::Error;

#[inline(always)]
pub(crate) fn chunk<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], Error> {
    bytes.first_chunk().ok_or(Error::Truncated)
}

#[inline(always)]
pub(crate) fn chunk_mut<const N: usize>(bytes: &mut [u8]) -> Result<&mut [u8; N], Error> {
    bytes.first_chunk_mut().ok_or(Error::BufferTooSmall)
}

#[derive(Clone, Copy)]
pub(crate) struct View<'a, const N: usize>(pub &'a [u8; N]);

impl<const N: usize> View<'_, N> {
    #[inline(always)]
    pub fn array<const AT: usize, const L: usize>(self) -> [u8; L] {
        const { assert!(AT + L <= N) }
        let mut out = [0; L];
        out.copy_from_slice(&self.0[AT..AT + L]);
        out
    }

    #[inline(always)]
    pub fn u8<const AT: usize>(self) -> u8 {
        u8::from_be_bytes(self.array::<AT, 1>())
    }

    #[inline(always)]
    pub fn u16<const AT: usize>(self) -> u16 {
        u16::from_be_bytes(self.array::<AT, 2>())
    }

    #[inline(always)]
    pub fn u32<const AT: usize>(self) -> u32 {
        u32::from_be_bytes(self.array::<AT, 4>())
    }

    #[inline(always)]
    pub fn u64<const AT: usize>(self) -> u64 {
        u64::from_be_bytes(self.array::<AT, 8>())
    }
}

pub(crate) struct Writer<'a, const N: usize>(pub &'a mut [u8; N]);

impl<const N: usize> Writer<'_, N> {
    #[inline(always)]
    pub fn array<const AT: usize, const L: usize>(&mut self, bytes: [u8; L]) -> &mut Self {
        const { assert!(AT + L <= N) }
        self.0[AT..AT + L].copy_from_slice(&bytes);
        self
    }

    #[inline(always)]
    pub fn u8<const AT: usize>(&mut self, value: u8) -> &mut Self {
        self.array::<AT, 1>([value])
    }

    #[inline(always)]
    pub fn u16<const AT: usize>(&mut self, value: u16) -> &mut Self {
        self.array::<AT, 2>(value.to_be_bytes())
    }

    #[inline(always)]
    pub fn u32<const AT: usize>(&mut self, value: u32) -> &mut Self {
        self.array::<AT, 4>(value.to_be_bytes())
    }

    #[inline(always)]
    pub fn u64<const AT: usize>(&mut self, value: u64) -> &mut Self {
        self.array::<AT, 8>(value.to_be_bytes())
    }
}
