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
}

pub(crate) struct Writer<'a, const N: usize>(pub &'a mut [u8; N]);

impl<const N: usize> Writer<'_, N> {
    #[inline(always)]
    pub fn array<const AT: usize, const L: usize>(&mut self, bytes: [u8; L]) -> &mut Self {
        const { assert!(AT + L <= N) }
        self.0[AT..AT + L].copy_from_slice(&bytes);
        self
    }
}

macro_rules! integers {
    ($($int:ident)+) => {
        impl<const N: usize> View<'_, N> {
            $(#[inline(always)]
            pub fn $int<const AT: usize>(self) -> $int {
                $int::from_be_bytes(self.array::<AT, { size_of::<$int>() }>())
            })+
        }

        impl<const N: usize> Writer<'_, N> {
            $(#[inline(always)]
            pub fn $int<const AT: usize>(&mut self, value: $int) -> &mut Self {
                self.array::<AT, { size_of::<$int>() }>(value.to_be_bytes())
            })+
        }
    };
}

integers! { u8 u16 u32 u64 }
