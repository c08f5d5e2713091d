//! The known facts about fifteen machines of the CloudPhysics traces.
//!
//! The figures are published statistics of the traces. The shares of hot tracks come from the text of Hajkazemi 2019
//! §2.2 and §4. Two figures need an explanation:
//!
//! - `unaligned_bytes`: the pages of 4 KiB that writes touch have more bytes than are written. The excess shows how
//!   many writes are not aligned to pages: each unaligned write of whole pages adds 4096 bytes.
//! - `page_writes`: a page's popularity is published as its share of all page writes. The product of this share and the
//!   number of page writes is the whole number stored here. The number of page writes is the bytes written plus that
//!   excess, in pages.
//!
//! Invariants:
//! 1. A [`Machine`] holds only published facts. No other file of the generators names machines.

/// The published facts about a machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    /// Name of the built-in workload that stands in for the machine's trace. The part after the dash is the paper's
    /// name for the machine.
    pub name: &'static str,
    /// One line for lists: the machine's counts, and the paper's statements about it.
    pub summary: &'static str,
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Number of reads in the trace that begin where the previous request ended.
    pub read_sequential: u64,
    /// Number of writes in the trace that begin where the previous request ended.
    pub write_sequential: u64,
    /// Length in bytes of the address range that the requests of the trace touch. The stand-in places the range at
    /// address 0.
    pub range_bytes: u64,
    /// Number of distinct 4 KiB pages read, times 4096 bytes.
    pub read_set_bytes: u64,
    /// Number of distinct 4 KiB pages written, times 4096 bytes.
    pub write_set_bytes: u64,
    /// Number of distinct 4 KiB pages read or written, times 4096 bytes.
    pub either_set_bytes: u64,
    /// Bytes of the 4 KiB pages that each write touches, summed over all writes, minus the bytes written.
    pub unaligned_bytes: u64,
    /// Percentiles 5, 50 and 95 of the sizes of writes, in bytes.
    pub write_size_bytes: [u64; 3],
    /// Percentiles 50 and 95 of the sizes of reads, in bytes.
    pub read_size_bytes: [u64; 2],
    /// Number of times that a 4 KiB page is written: percentiles 50, 75, 90 and 95 over the written pages, and the
    /// maximum.
    pub page_writes: [u64; 5],
    pub told: Told,
}

/// The paper's statements about the positions of a machine's writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// Number of the most written tracks, and their share of the writes; `None` if the paper does not say.
    pub hot: Option<HotTracks>,
    /// Whether the paper says that tracks beside much-written tracks are much written too.
    pub has_hot_neighbours: bool,
}

/// Share of the writes that go to the hottest tracks: `tracks` tracks get `percent` percent of the writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct HotTracks {
    pub tracks: u64,
    pub percent: u64,
}

/// A machine whose writes the paper does not locate.
const NOTHING: Told = Told { hot: None, has_hot_neighbours: false };

const fn hot(tracks: u64, percent: u64) -> Told {
    Told { hot: Some(HotTracks { tracks, percent }), has_hot_neighbours: false }
}

impl Machine {
    /// Returns the number of reads and writes.
    pub(super) fn requests(&self) -> u64 {
        self.reads + self.writes
    }
}

/// The fifteen machines.
pub(super) const MACHINES: [Machine; 15] = [
    Machine {
        name: "cloudphysics-w08",
        summary: "44.5 million requests, 9 % writes",
        reads: 40_518_863,
        writes: 3_939_551,
        read_bytes: 4_108_692_295_168,
        write_bytes: 148_142_380_544,
        read_sequential: 19_955_520,
        write_sequential: 62_079,
        range_bytes: 357_116_440_576,
        read_set_bytes: 350_261_436_416,
        write_set_bytes: 35_740_344_320,
        either_set_bytes: 353_008_033_792,
        unaligned_bytes: 1_026_560,
        write_size_bytes: [8_192, 8_192, 262_144],
        read_size_bytes: [8_192, 524_288],
        page_writes: [4, 5, 5, 6, 15_178],
        told: NOTHING,
    },
    Machine {
        name: "cloudphysics-w09",
        summary: "49.6 million requests, 55 % writes, 20 % of them to 100 tracks",
        reads: 22_511_358,
        writes: 27_111_572,
        read_bytes: 3_550_725_972_992,
        write_bytes: 927_047_674_880,
        read_sequential: 13_225_174,
        write_sequential: 6_020_978,
        range_bytes: 632_491_126_784,
        read_set_bytes: 520_831_492_096,
        write_set_bytes: 173_086_650_368,
        either_set_bytes: 527_929_700_352,
        unaligned_bytes: 36_237_956_096,
        write_size_bytes: [512, 4_096, 131_072],
        read_size_bytes: [65_536, 262_144],
        page_writes: [2, 5, 8, 10, 1_615_148],
        // §4: "around 20 %" of the writes go to the hottest 100 tracks.
        told: hot(100, 20),
    },
    Machine {
        name: "cloudphysics-w17",
        summary: "31.4 million requests, 79 % writes",
        reads: 6_627_687,
        writes: 24_770_403,
        read_bytes: 74_444_530_176,
        write_bytes: 503_571_666_432,
        read_sequential: 1_149_229,
        write_sequential: 6_271_056,
        range_bytes: 42_948_612_096,
        read_set_bytes: 17_580_105_728,
        write_set_bytes: 8_079_568_896,
        either_set_bytes: 18_277_666_816,
        unaligned_bytes: 29_281_548_800,
        write_size_bytes: [1_536, 8_192, 65_536],
        read_size_bytes: [8_192, 16_384],
        page_writes: [16, 56, 208, 234, 475_237],
        told: NOTHING,
    },
    Machine {
        name: "cloudphysics-w24",
        summary: "27.2 million requests, 12 % writes",
        reads: 23_991_728,
        writes: 3_173_643,
        read_bytes: 323_033_761_792,
        write_bytes: 86_711_051_264,
        read_sequential: 1_811_705,
        write_sequential: 133_835,
        range_bytes: 118_109_495_296,
        read_set_bytes: 67_565_264_896,
        write_set_bytes: 22_187_520_000,
        either_set_bytes: 70_334_984_192,
        unaligned_bytes: 588_524_544,
        write_size_bytes: [2_560, 4_096, 98_304],
        read_size_bytes: [8_192, 65_536],
        page_writes: [3, 4, 6, 8, 191_655],
        told: NOTHING,
    },
    Machine {
        name: "cloudphysics-w28",
        summary: "19.7 million requests, 33 % writes",
        reads: 13_223_835,
        writes: 6_515_596,
        read_bytes: 211_806_267_904,
        write_bytes: 301_871_898_624,
        read_sequential: 6_713_684,
        write_sequential: 655_821,
        range_bytes: 86_797_508_608,
        read_set_bytes: 50_257_199_104,
        write_set_bytes: 68_123_127_808,
        either_set_bytes: 71_433_981_952,
        unaligned_bytes: 3_786_346_496,
        write_size_bytes: [1_536, 4_096, 262_144],
        read_size_bytes: [4_096, 114_688],
        page_writes: [2, 5, 10, 14, 255_725],
        told: NOTHING,
    },
    Machine {
        name: "cloudphysics-w31",
        summary: "21.2 million requests, 16 % writes",
        reads: 17_704_456,
        writes: 3_462_527,
        read_bytes: 5_370_825_960_448,
        write_bytes: 344_231_974_400,
        read_sequential: 10_099_996,
        write_sequential: 516_678,
        range_bytes: 966_365_536_256,
        read_set_bytes: 684_454_436_864,
        write_set_bytes: 159_463_178_240,
        either_set_bytes: 802_962_817_024,
        unaligned_bytes: 448_440_832,
        write_size_bytes: [4_096, 16_384, 1_044_480],
        read_size_bytes: [65_536, 1_052_672],
        page_writes: [2, 2, 3, 4, 49_709],
        told: NOTHING,
    },
    Machine {
        name: "cloudphysics-w35",
        summary: "15.4 million requests, 96 % writes",
        reads: 646_742,
        writes: 14_768_922,
        read_bytes: 11_437_793_280,
        write_bytes: 239_345_120_256,
        read_sequential: 111_597,
        write_sequential: 582_823,
        range_bytes: 56_453_910_528,
        read_set_bytes: 1_940_279_296,
        write_set_bytes: 4_665_008_128,
        either_set_bytes: 4_777_807_872,
        unaligned_bytes: 2_861_186_048,
        write_size_bytes: [4_096, 4_096, 32_768],
        read_size_bytes: [8_192, 65_536],
        page_writes: [5, 17, 93, 293, 100_080],
        told: NOTHING,
    },
    Machine {
        name: "cloudphysics-w39",
        summary: "17.9 million requests, 97 % writes, half of them to 10 tracks",
        reads: 458_700,
        writes: 17_461_323,
        read_bytes: 3_921_789_952,
        write_bytes: 152_842_826_752,
        read_sequential: 291_094,
        write_sequential: 1_246_433,
        range_bytes: 171_798_687_744,
        read_set_bytes: 2_252_849_152,
        write_set_bytes: 3_004_887_040,
        either_set_bytes: 4_391_030_784,
        unaligned_bytes: 48_128,
        write_size_bytes: [4_096, 8_192, 12_288],
        read_size_bytes: [4_096, 32_768],
        page_writes: [4, 8, 28, 40, 425_164],
        // §4: half of the writes "are to a handful of tracks"; the number ten is our choice.
        told: hot(10, 50),
    },
    Machine {
        name: "cloudphysics-w43",
        summary: "15.6 million requests, 51 % writes",
        reads: 7_603_814,
        writes: 8_013_607,
        read_bytes: 256_325_226_496,
        write_bytes: 259_804_377_088,
        read_sequential: 3_351_242,
        write_sequential: 3_242_133,
        range_bytes: 82_978_275_328,
        read_set_bytes: 48_141_258_752,
        write_set_bytes: 17_033_678_848,
        either_set_bytes: 52_223_234_048,
        unaligned_bytes: 32_823_734_272,
        write_size_bytes: [4_096, 20_480, 65_536],
        read_size_bytes: [28_672, 65_536],
        page_writes: [7, 16, 24, 27, 43_531],
        told: NOTHING,
    },
    Machine {
        name: "cloudphysics-w46",
        summary: "11.5 million requests, 62 % writes",
        reads: 4_355_923,
        writes: 7_188_117,
        read_bytes: 540_232_599_040,
        write_bytes: 1_560_299_190_272,
        read_sequential: 3_097_564,
        write_sequential: 1_027_878,
        range_bytes: 775_143_284_736,
        read_set_bytes: 267_697_934_336,
        write_set_bytes: 188_967_444_480,
        either_set_bytes: 312_145_330_176,
        unaligned_bytes: 87_619_584,
        write_size_bytes: [4_096, 4_096, 1_052_672],
        read_size_bytes: [131_072, 196_608],
        page_writes: [4, 11, 20, 27, 783_429],
        told: NOTHING,
    },
    Machine {
        name: "cloudphysics-w56",
        summary: "10.9 million requests, 95 % writes",
        reads: 516_870,
        writes: 10_382_760,
        read_bytes: 16_094_851_072,
        write_bytes: 103_514_988_544,
        read_sequential: 55_478,
        write_sequential: 681_615,
        range_bytes: 259_787_042_816,
        read_set_bytes: 2_830_241_792,
        write_set_bytes: 3_144_818_688,
        either_set_bytes: 3_779_796_992,
        unaligned_bytes: 42_527_784_960,
        write_size_bytes: [4_096, 4_096, 24_576],
        read_size_bytes: [8_192, 155_648],
        page_writes: [6, 32, 66, 222, 189_460],
        told: NOTHING,
    },
    Machine {
        name: "cloudphysics-w61",
        summary: "9.9 million requests, 51 % writes",
        reads: 4_864_254,
        writes: 5_020_438,
        read_bytes: 183_270_170_624,
        write_bytes: 83_354_824_192,
        read_sequential: 605_502,
        write_sequential: 14_219,
        range_bytes: 24_737_624_064,
        read_set_bytes: 19_671_212_032,
        write_set_bytes: 9_496_178_688,
        either_set_bytes: 20_834_725_888,
        unaligned_bytes: 512,
        write_size_bytes: [8_192, 8_192, 65_536],
        read_size_bytes: [8_192, 131_072],
        page_writes: [4, 10, 20, 29, 2_625],
        told: NOTHING,
    },
    Machine {
        name: "cloudphysics-w84",
        summary: "4.8 million requests, 86 % writes",
        reads: 655_397,
        writes: 4_158_838,
        read_bytes: 14_721_939_456,
        write_bytes: 133_255_165_952,
        read_sequential: 177_653,
        write_sequential: 602_330,
        range_bytes: 16_079_032_320,
        read_set_bytes: 9_545_547_776,
        write_set_bytes: 4_396_900_352,
        either_set_bytes: 10_511_286_272,
        unaligned_bytes: 17_034_557_440,
        write_size_bytes: [4_096, 4_096, 167_936],
        read_size_bytes: [4_096, 131_072],
        page_writes: [4, 10, 126, 180, 25_097],
        told: NOTHING,
    },
    Machine {
        name: "cloudphysics-w87",
        summary: "3.8 million requests, 80 % writes, 15 % of them to 100 tracks, hot neighbours",
        reads: 767_441,
        writes: 3_019_159,
        read_bytes: 44_292_348_928,
        write_bytes: 57_534_799_360,
        read_sequential: 165_998,
        write_sequential: 2_086_854,
        range_bytes: 220_012_802_048,
        read_set_bytes: 19_211_591_680,
        write_set_bytes: 14_550_761_472,
        either_set_bytes: 25_085_550_592,
        unaligned_bytes: 6_814_351_872,
        write_size_bytes: [512, 1_024, 65_536],
        read_size_bytes: [65_536, 131_072],
        page_writes: [4, 7, 9, 10, 13_030],
        // §4: "around … 15 %" go to the hottest 100, and many of these tracks have equally hot neighbours (fig. 11).
        told: Told { has_hot_neighbours: true, ..hot(100, 15) },
    },
    Machine {
        name: "cloudphysics-w106",
        summary: "3.3 million requests, 82 % writes, 80 % of them to 100 tracks",
        reads: 576_666,
        writes: 2_699_254,
        read_bytes: 9_074_881_024,
        write_bytes: 22_861_578_752,
        read_sequential: 154_019,
        write_sequential: 422_150,
        range_bytes: 19_624_230_912,
        read_set_bytes: 3_828_756_480,
        write_set_bytes: 717_213_696,
        either_set_bytes: 4_182_593_536,
        unaligned_bytes: 10_999_918_080,
        write_size_bytes: [512, 4_096, 48_640],
        read_size_bytes: [8_192, 57_344],
        page_writes: [7, 36, 50, 98, 272_598],
        // §2.2: 80 % of the writes go to 100 tracks.
        told: hot(100, 80),
    },
];
