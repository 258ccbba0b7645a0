//! Bit fields in 64-bit words.

/// A type of a bit field.
pub(crate) trait Bits: Copy {
    const WIDTH: u32;
    /// Ignores excess bits.
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! integers {
    ($($type:ident $(by $unsigned:ident)?),+) => {
        $(
            impl Bits for $type {
                const WIDTH: u32 = $type::BITS;
                #[inline(always)]
                fn from_bits(bits: u64) -> Self {
                    bits as Self
                }
                #[inline(always)]
                fn bits(self) -> u64 {
                    (self $(as $unsigned)?) as u64
                }
            }
        )+
    };
}

integers!(u8, u32, u64, i32 by u32);

impl Bits for bool {
    const WIDTH: u32 = 1;
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits & 1 != 0
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

/// The low `bits` of a value of at most `width` bits.
#[inline(always)]
pub(crate) const fn low(value: u64, bits: u32, width: u32) -> u64 {
    if bits < width { value & ((1 << bits) - 1) } else { value }
}

/// Declares a type stored in one 64-bit word: its fields from the lowest bits up, each with its
/// number of bits. `pack` truncates values that are too large.
macro_rules! packed {
    ($(#[$about:meta])* $vis:vis struct $name:ident { $($(#[$doc:meta])* $field:ident: $type:ident in $bits:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $name {
            $($(#[$doc])* $vis $field: $type,)+
        }

        const _: () = {
            let bits = 0 $(+ $bits)+;
            assert!(bits <= 64);
        };

        impl $name {
            /// Decodes a word.
            #[inline(always)]
            $vis fn unpack(word: u64) -> Self {
                use $crate::packed::{Bits, low};
                let below = 0_u32;
                $(
                    let $field = <$type as Bits>::from_bits(low(word >> below, $bits, <$type as Bits>::WIDTH));
                    let below = below + $bits;
                )+
                let _ = below;
                Self { $($field,)+ }
            }

            /// Encodes the word.
            #[inline(always)]
            $vis fn pack(self) -> u64 {
                use $crate::packed::{Bits, low};
                let (word, below) = (0_u64, 0_u32);
                $(
                    let word = word | low(self.$field.bits(), $bits, <$type as Bits>::WIDTH) << below;
                    let below = below + $bits;
                )+
                let _ = below;
                word
            }
        }
    };
}

pub(crate) use packed;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    packed! {
        struct Sample {
            place: u32 in 24,
            marked: bool in 1,
            trend: i32 in 32,
            note: u8 in 7,
        }
    }

    proptest! {
        /// Each field has separate bits, in order from the lowest, and is truncated to its width.
        #[test]
        fn fields_have_separate_bits(place: u32, marked: bool, trend: i32, note: u8) {
            let word = Sample { place, marked, trend, note }.pack();
            prop_assert_eq!(word & 0xff_ffff, u64::from(place & 0xff_ffff));
            prop_assert_eq!(word >> 24 & 1, u64::from(marked));
            prop_assert_eq!((word >> 25) as u32 as i32, trend);
            prop_assert_eq!(word >> 57, u64::from(note & 0x7f));
            let kept = Sample { place: place & 0xff_ffff, marked, trend, note: note & 0x7f };
            prop_assert_eq!(Sample::unpack(word), kept);
        }
    }
}
