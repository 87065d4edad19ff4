//! Prints dates as `Date.prototype.toISOString` does, in tasks.

const MS_PER_DAY: i64 = 86_400_000;
/// The largest valid time value.
const MOST: f64 = 8.64e15;

/// The size of the longest date.
pub(crate) const DATE: usize = 27;

/// Writes a date; returns its length, or `None` for an invalid time. The rest of `to` stays as it is.
pub(crate) fn iso(time: f64, to: &mut [u8; DATE]) -> Option<usize> {
    if time.is_nan() || MOST < time.abs() {
        return None;
    }
    let time = time as i64;
    let (year, month, day) = civil(time.div_euclid(MS_PER_DAY));
    let ms = time.rem_euclid(MS_PER_DAY) as u32;
    let (second, ms) = (ms / 1000, ms % 1000);
    let size = year.unsigned_abs() as u32;
    let mut start = 0;
    if !(0..=9999).contains(&year) {
        let [a, b] = two(size / 10_000);
        start = put(to, 0, [if year < 0 { b'-' } else { b'+' }, a, b]);
    }
    let [y0, y1] = two(size / 100 % 100);
    let [y2, y3] = two(size % 100);
    let [m0, m1] = two(month);
    let [d0, d1] = two(day);
    let [h0, h1] = two(second / 3600);
    let [n0, n1] = two(second / 60 % 60);
    let [s0, s1] = two(second % 60);
    let [x1, x2] = two(ms % 100);
    let x0 = b'0' + (ms / 100) as u8;
    let date = [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1, b'T', h0, h1, b':', n0, n1];
    start = put(to, start, date);
    Some(put(to, start, [b':', s0, s1, b'.', x0, x1, x2, b'Z']))
}

/// Writes `bytes` at `start`; returns their end.
fn put<const N: usize>(to: &mut [u8; DATE], start: usize, bytes: [u8; N]) -> usize {
    if let Some(place) = to.get_mut(start..start + N) {
        place.copy_from_slice(&bytes);
    }
    start + N
}

/// Returns the digits of a number below 100.
fn two(value: u32) -> [u8; 2] {
    [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8]
}

/// Returns year, month and day of the day `days` after 1970-01-01, by Howard Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097) as u32;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = i64::from(year_of_era) + era * 400 + i64::from(month <= 2);
    (year, month, day)
}
