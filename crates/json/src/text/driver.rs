//! The loops of the kernels that look shuffles up in a table, AVX2 and NEON, written once over [`TextVector`].
//!
//! A kernel's entry points call them, on any thread. They must be inlined into a function that has the features of the
//! vector; otherwise every step would be a call.

use super::pushed::StepMasks;
use super::scalar;

/// Steps of an instruction set. A step takes one vector: [`Self::CHARACTERS`] of Latin-1 or half as many units of UTF-16.
///
/// # Safety
/// - The machine has the instruction set, for every method.
/// - *Room* for characters includes [`super::SLACK`] bytes behind them, which a step may overwrite.
pub trait TextVector {
    /// A vector of characters of one byte.
    type Characters: Copy;
    /// A vector of units of two bytes.
    type Units: Copy;
    const CHARACTERS: usize;
    const UNITS: usize = Self::CHARACTERS / 2;

    /// Loads up to a vector of characters, followed by zeros.
    ///
    /// # Safety
    /// `src` is readable for `len` bytes.
    unsafe fn load_characters(src: *const u8, len: usize) -> Self::Characters;

    /// Loads up to a vector of units, followed by zeros.
    ///
    /// # Safety
    /// `src` is readable for `2 * len` bytes.
    unsafe fn load_units(src: *const u8, len: usize) -> Self::Units;

    /// Returns whether all units are ASCII.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn is_ascii(units: Self::Units) -> bool;

    /// Returns whether every unit becomes three bytes.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn is_three(units: Self::Units) -> bool;

    /// Makes characters of two vectors of units. Units beyond ASCII become any character.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn narrow(first: Self::Units, second: Self::Units) -> Self::Characters;

    /// Writes characters, each as one or two bytes.
    ///
    /// # Safety
    /// `dst` has room for `count` characters.
    unsafe fn push_latin1<const ESCAPE: bool>(
        characters: Self::Characters,
        count: usize,
        dst: *mut u8,
    ) -> StepMasks;

    /// Writes units of any kind.
    ///
    /// # Safety
    /// `dst` has room for `count` units.
    unsafe fn push_utf16<const ESCAPE: bool>(
        units: Self::Units,
        count: usize,
        dst: *mut u8,
    ) -> StepMasks;

    /// Writes a vector of units, each as three bytes.
    ///
    /// # Safety
    /// `dst` has room for [`Self::UNITS`] units.
    unsafe fn push_threes(units: Self::Units, dst: *mut u8);
}

/// Writes Latin-1; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold, and the machine has the instruction set of `V`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it is compiled with the features of its caller")]
pub unsafe fn latin1<V: TextVector, const ESCAPE: bool>(
    src: *const u8,
    len: usize,
    dst: *mut u8,
) -> usize {
    let (mut read, mut written) = (0, 0);
    while read < len {
        let count = (len - read).min(V::CHARACTERS);
        let to = dst.wrapping_add(written);
        // SAFETY: `count` characters are left.
        let characters = unsafe { V::load_characters(src.wrapping_add(read), count) };
        // SAFETY: `count` characters have room.
        let pushed = unsafe { V::push_latin1::<ESCAPE>(characters, count, to) };
        // A branch, not arithmetic: the next load must not wait for the result of this one.
        if pushed.rare == 0 {
            read += count;
            written += pushed.len(count);
            continue;
        }
        let plain = pushed.rare.trailing_zeros() as usize;
        read += plain;
        written += pushed.len(plain);
        // SAFETY: `read` is below `len`, since the rare character is one of `count`.
        let character = unsafe { src.wrapping_add(read).read() };
        let to = dst.wrapping_add(written);
        // SAFETY: a character has room for six bytes, and the slack for two.
        written += unsafe { scalar::one::<ESCAPE>(u16::from(character), to) };
        read += 1;
    }
    written
}

/// Writes UTF-16; returns how many bytes.
///
/// # Safety
/// The conditions of [`super::Write`] hold, and the machine has the instruction set of `V`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it is compiled with the features of its caller")]
pub unsafe fn utf16<V: TextVector, const ESCAPE: bool>(
    src: *const u8,
    len: usize,
    dst: *mut u8,
) -> usize {
    let (mut read, mut written) = (0, 0);
    while read < len {
        let (from, to) = (src.wrapping_add(2 * read), dst.wrapping_add(written));
        // SAFETY: at least one unit is left, and `to` has room for all that are left.
        let (count, pushed) = unsafe { push_units::<V, ESCAPE>(from, len - read, to) };
        // A branch, not arithmetic: the next load must not wait for the result of this one.
        if pushed.rare == 0 {
            read += count;
            written += pushed.len(count);
            continue;
        }
        let plain = pushed.rare.trailing_zeros() as usize;
        read += plain;
        written += pushed.len(plain);
        // SAFETY: `read` is below `len`, since the rare unit is one of `count`.
        let unit = unsafe { scalar::unit_at(src, read) };
        // SAFETY: a unit has room for six bytes, and the slack for two.
        written += unsafe { scalar::one::<ESCAPE>(unit, dst.wrapping_add(written)) };
        read += 1;
    }
    written
}

/// Writes one step of UTF-16, or two steps of ASCII; returns how many units it took.
///
/// # Safety
/// `src` is readable for `left` units, at least one, and `dst` has room for them.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it is compiled with the features of its caller")]
unsafe fn push_units<V: TextVector, const ESCAPE: bool>(
    src: *const u8,
    left: usize,
    dst: *mut u8,
) -> (usize, StepMasks) {
    // SAFETY: at least one unit is left.
    let count = unsafe { scalar::whole(src, left, V::UNITS) };
    // SAFETY: these units are left; the last may be one that waits for its second half.
    let units = unsafe { V::load_units(src, left.min(V::UNITS)) };
    // SAFETY: the machine has the instructions.
    if V::CHARACTERS <= left && unsafe { V::is_ascii(units) } {
        // SAFETY: two vectors of units are left.
        let others = unsafe { V::load_units(src.wrapping_add(2 * V::UNITS), V::UNITS) };
        // SAFETY: the machine has the instructions.
        let count = if unsafe { V::is_ascii(others) } { V::CHARACTERS } else { V::UNITS };
        // SAFETY: the machine has the instructions.
        let characters = unsafe { V::narrow(units, others) };
        // SAFETY: `count` units are left and have room.
        return (count, unsafe { V::push_latin1::<ESCAPE>(characters, count, dst) });
    }
    // SAFETY: the machine has the instructions.
    if count == V::UNITS && unsafe { V::is_three(units) } {
        // SAFETY: a vector of units has room.
        unsafe { V::push_threes(units, dst) };
        return (count, StepMasks { rare: 0, several: !0, threes: !0 });
    }
    // SAFETY: `count` units have room.
    (count, unsafe { V::push_utf16::<ESCAPE>(units, count, dst) })
}
