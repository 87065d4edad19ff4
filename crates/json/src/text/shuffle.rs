//! Tables of shuffles that push the bytes that count to the front of a vector, for machines without `vpcompressb`. On any
//! thread; the AVX2 and NEON kernels read them.

/// The source index of each byte.
pub type Shuffle = [u8; 16];

/// Index that makes a byte zero.
const NONE: u8 = 0x80;

/// Shuffles of eight lanes of two bytes. The index has a bit for each lane whose second byte counts.
pub static OF_TWO: [Shuffle; 256] = {
    let mut shuffles = [[NONE; 16]; 256];
    let mut both = 0;
    while both < 256 {
        let mut lens = [1; 8];
        let mut lane = 0;
        while lane < 8 {
            #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
            {
                lens[lane] += both >> lane & 1;
            }
            lane += 1;
        }
        #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            shuffles[both] = push(lens);
        }
        both += 1;
    }
    shuffles
};

/// Shuffles of four lanes of four bytes. The low half of the index has a bit for each lane of more than one byte, the high
/// half for each lane of three.
pub static OF_FOUR: [Shuffle; 256] = {
    let mut shuffles = [[NONE; 16]; 256];
    let mut index = 0;
    while index < 256 {
        let mut lens = [1; 4];
        let mut lane = 0;
        while lane < 4 {
            #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
            {
                lens[lane] += (index >> lane & 1) + (index >> (lane + 4) & 1);
            }
            lane += 1;
        }
        #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            shuffles[index] = push(lens);
        }
        index += 1;
    }
    shuffles
};

/// Returns the shuffle that keeps the first `lens[lane]` bytes of each lane.
const fn push<const LANES: usize>(lens: [usize; LANES]) -> Shuffle {
    let mut shuffle = [NONE; 16];
    let (mut lane, mut pushed) = (0, 0);
    while lane < LANES {
        let mut byte = 0;
        #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
        while byte < lens[lane] {
            shuffle[pushed] = (16 / LANES * lane + byte) as u8;
            pushed += 1;
            byte += 1;
        }
        lane += 1;
    }
    shuffle
}

/// The letter of the escape of each control character below 16; zero if it has none.
pub static LETTERS: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, b'b', b't', b'n', 0, b'f', b'r', 0, 0];
