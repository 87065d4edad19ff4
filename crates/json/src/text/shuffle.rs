//! Which bytes of a vector count, as shuffles that push them to the front: what machines without `vpcompressb` look up.

pub type Shuffle = [u8; 16];

/// A shuffle leaves a byte zero for this.
const NONE: u8 = 0x80;

/// Eight lanes of two bytes: by the lanes of which both count.
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

/// Four lanes of four bytes: by the lanes of which more than one counts, and in the high half those of which three do.
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

/// The first bytes of each of the lanes that divide 16 bytes.
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

/// The letter behind the backslash, by the lower half of a control character below 16; zero if it has none.
pub static LETTERS: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, b'b', b't', b'n', 0, b'f', b'r', 0, 0];
