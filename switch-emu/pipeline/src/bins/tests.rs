use super::*;
use core::cell::Cell;
use proptest::prelude::*;
use std::vec::Vec;

/// The cells of one port in memory.
struct Port {
    scale: BinScale,
    bins: Vec<Bin<Cell<u64>>>,
}

impl Port {
    fn new(scale: BinScale) -> Self {
        Self { scale, bins: (0..scale.cells()).map(|_| Bin::default()).collect() }
    }
}

impl Cells for Port {
    type Word = Cell<u64>;
    fn scale(&self) -> &BinScale {
        &self.scale
    }
    fn bin(&self, cell: u32) -> Option<&Bin<Cell<u64>>> {
        self.bins.get(cell as usize)
    }
}

/// Returns a scale with 16 bins of 1 ns at first.
fn scale() -> BinScale {
    BinScale { begin_ps: 5_000, bin_ps: 1_000, first_log2: 4 }
}

#[test]
fn the_length_of_a_cell_depends_on_its_start() {
    let cell = |ns: u64| scale().cell(ns * 1_000);
    assert_eq!([0, 4, 5, 6, 20].map(cell), [0, 0, 1, 2, 16]);
    // After the 16 bins of 1 ns come 8 bins of 2 ns, 8 of 4, and so on to 1024.
    assert_eq!([21, 22, 23, 36, 37, 40, 41].map(cell), [17, 17, 18, 24, 25, 25, 26]);
    assert_eq!((scale().cells(), cell(5 + 16_383), cell(5 + 16_384), cell(1 << 40)), (97, 96, 96, 96));
    assert_eq!(
        [1, 16, 17, 24, 25].map(|cell| scale().place(cell)),
        [(0, 0), (0, 15), (1, 8), (1, 15), (2, 8)].map(Some)
    );
    assert_eq!(scale().place(0), None);
}

#[test]
fn a_scale_covers_the_span_within_its_memory_limit() {
    let scale = BinScale::new(0, 20_000_000, 1_000_000_000, 100, 100 << 20);
    assert_eq!((scale.bin_ps, scale.cells()), (20_000_000, 1_537));
    let few = BinScale::new(0, 20_000_000, 1_000_000_000, 100, 2 << 20);
    assert!(few.cells() * 56 * 100 <= 2 << 20 && few.cells() * 2 * 56 * 100 > 2 << 20, "{few:?}");
    let long = BinScale::new(7, 1, 3_600_000_000_000_000, 1_000_000, 0);
    assert!(long.bin_ps.is_power_of_two() && long.cells() == 97);
    assert!((1..=96).contains(&long.cell(7 + 3_600_000_000_000_000 - 1)));
    let off = BinScale::new(7, 0, 1_000, 1, 1 << 20);
    assert_eq!((off.is_on(), off.cells(), off), (false, 0, BinScale::default()));
}

proptest! {
    /// Every time is in the cell that covers it, and cells are sorted by time.
    #[test]
    fn the_index_of_a_cell_covers_its_times(t_ps in 0u64..16_389_000, more in 0u64..1_000) {
        let scale = scale();
        let cell = scale.cell(t_ps);
        prop_assert!((cell as usize) < scale.cells() && cell <= scale.cell(t_ps + more));
        match scale.place(cell) {
            None => prop_assert!(t_ps < scale.begin_ps),
            Some((level, bin)) => {
                let width = scale.bin_ps << level;
                let from = scale.begin_ps + bin * width;
                prop_assert!((from..from + width).contains(&t_ps), "{cell}: {from} + {width}");
            }
        }
    }

    /// Compared with sums over all frames: no frame is counted twice or omitted.
    #[test]
    fn sums_over_the_cells_are_those_over_the_frames(
        frames in prop::collection::vec((0u64..2_000_000, 0u64..50_000, 1u32..4_000, 0u32..8), 1..200),
    ) {
        let port = Port::new(scale());
        let mut all = Bin::default();
        for (arrived_ps, delay_ps, len, flags) in frames {
            let bytes = if flags & LOST != 0 { 0 } else { len };
            port.record(&Transit { arrived_ps, departed_ps: arrived_ps + delay_ps, waiting: len, bytes, flags });
            all.add(&Bin {
                sent_bytes: bytes.into(),
                queue_max: len.into(),
                queue_sum: len.into(),
                queued: 1,
                marks: (flags & MARKED).into(),
                trims: (flags & TRIMMED != 0).into(),
                drops: (flags & LOST != 0).into(),
            });
        }
        let mut sum = Bin::default();
        port.bins.iter().for_each(|bin| sum.add(&bin.read()));
        prop_assert_eq!(sum, all);
    }
}
