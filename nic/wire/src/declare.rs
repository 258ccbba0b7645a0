//! Declares headers: fields and offsets in one list.

use crate::bytes::{View, Writer};
use crate::{Error, EvPort};

/// The header of one kind. `header` begins at the common part.
pub(crate) trait Header: Sized {
    /// Bytes of the header, common part included and an Ack's echoes excluded.
    const BYTES: usize;

    fn parse(header: &[u8]) -> Result<Self, Error>;

    /// Writes the kind's fields. Checksums are left 0.
    fn emit(&self, header: &mut [u8]) -> Result<(), Error>;

    fn flags(&self) -> u8 {
        0
    }
}

pub(crate) trait Value: Sized {
    fn read<const AT: usize, const N: usize>(header: View<'_, N>) -> Result<Self, Error>;
    fn write<const AT: usize, const N: usize>(self, header: &mut Writer<'_, N>);
}

/// The bitmap of an Ack: words with the least significant byte first.
impl Value for [u64; 4] {
    #[inline(always)]
    fn read<const AT: usize, const N: usize>(header: View<'_, N>) -> Result<Self, Error> {
        let bytes = header.array::<AT, 32>();
        let (words, _) = bytes.as_chunks::<8>();
        Ok(core::array::from_fn(|at| words.get(at).map_or(0, |word| u64::from_le_bytes(*word))))
    }

    #[inline(always)]
    fn write<const AT: usize, const N: usize>(self, header: &mut Writer<'_, N>) {
        let mut bytes = [0; 32];
        for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self) {
            *to = word.to_le_bytes();
        }
        header.array::<AT, 32>(bytes);
    }
}

impl Value for [u8; 16] {
    #[inline(always)]
    fn read<const AT: usize, const N: usize>(header: View<'_, N>) -> Result<Self, Error> {
        Ok(header.array::<AT, 16>())
    }

    #[inline(always)]
    fn write<const AT: usize, const N: usize>(self, header: &mut Writer<'_, N>) {
        header.array::<AT, 16>(self);
    }
}

macro_rules! values {
    ($($Type:ty: $size:ident, $bits:ident => $read:expr, $write:expr;)+) => {
        $(impl $crate::declare::Value for $Type {
            #[inline(always)]
            fn read<const AT: usize, const N: usize>(header: $crate::bytes::View<'_, N>) -> Result<Self, $crate::Error> {
                let $bits = header.$size::<AT>();
                Ok($read)
            }

            #[inline(always)]
            fn write<const AT: usize, const N: usize>(self, header: &mut $crate::bytes::Writer<'_, N>) {
                let $bits = self;
                header.$size::<AT>($write);
            }
        })+
    };
}

values! {
    u8: u8, value => value, value;
    u16: u16, value => value, value;
    u32: u32, value => value, value;
    u64: u64, value => value, value;
    bool: u8, value => value & 1 != 0, u8::from(value);
    EvPort: u16, value => EvPort::new(value), value.number();
}

/// Defines a header type from its size in bytes, its fields by offset and its flags by bit.
/// Bytes behind the common header without a field are sent as 0. Echoes follow the header; the
/// field at their offset counts them.
macro_rules! header {
    (
        $(#[$about:meta])* $Name:ident, $bytes:literal bytes;
        $($(#[$about_field:meta])* $at:literal $field:ident: $Type:ty;)+
        $(flags: $($(#[$about_flag:meta])* $bit:literal $flag:ident;)+)?
        $(echoes: $(#[$about_echoes:meta])* $count:literal $echoes:ident;)?
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $Name {
            $($(#[$about_field])* pub $field: $Type,)+
            $($($(#[$about_flag])* pub $flag: bool,)+)?
            $($(#[$about_echoes])* pub $echoes: $crate::Echoes,)?
        }

        impl $crate::declare::Header for $Name {
            const BYTES: usize = $bytes;

            #[inline(always)]
            fn parse(header: &[u8]) -> Result<Self, $crate::Error> {
                use $crate::{bytes, declare::Value, header::field::FLAGS};
                let (header, _rest) = header.split_first_chunk::<$bytes>().ok_or($crate::Error::Truncated)?;
                let view = bytes::View(header);
                let _flags = view.u8::<FLAGS>();
                Ok(Self {
                    $($field: Value::read::<$at, $bytes>(view)?,)+
                    $($($flag: _flags & $bit != 0,)+)?
                    $($echoes: $crate::Echoes::parse(view.u8::<$count>(), _rest)?,)?
                })
            }

            #[inline(always)]
            fn emit(&self, header: &mut [u8]) -> Result<(), $crate::Error> {
                use $crate::{bytes, declare::Value, header::COMMON_BYTES};
                let (header, _rest) = header.split_first_chunk_mut::<$bytes>().ok_or($crate::Error::BufferTooSmall)?;
                header[COMMON_BYTES..].fill(0);
                let mut writer = bytes::Writer(header);
                $(Value::write::<$at, $bytes>(self.$field, &mut writer);)+
                $(
                    writer.u8::<$count>(self.$echoes.len() as u8);
                    self.$echoes.emit(_rest)?;
                )?
                Ok(())
            }

            fn flags(&self) -> u8 {
                0 $($(| if self.$flag { $bit } else { 0 })+)?
            }
        }
    };
}

pub(crate) use {header, values};
