//! Rows that Python wrote and `JSON.parse` does not take, as JSON that says the same.

/// `row`, which is kept, with each `NaN`, `Infinity` and `-Infinity` as a string that begins with a mark, and each byte
/// that is no UTF-8 as U+FFFD. The mark stands nowhere in the row.
#[must_use]
pub fn standard(row: &[u8]) -> (String, String) {
    let text = String::from_utf8_lossy(row);
    let mut mark = String::from("number:");
    while text.contains(&mark) {
        mark.insert(0, '#');
    }
    let mut json = String::with_capacity(text.len() + 64);
    let mut rest = &*text;
    while let Some(at) = rest.find(['"', 'N', 'I']) {
        let (before, word) = rest.split_at(at);
        if word.starts_with('"') {
            let (string, behind) = word.split_at(string_len(word));
            json.push_str(before);
            json.push_str(string);
            rest = behind;
            continue;
        }
        let name = if word.starts_with('N') { "NaN" } else { "Infinity" };
        let (before, sign) = match before.strip_suffix('-') {
            Some(before) => (before, "-"),
            None => (before, ""),
        };
        json.push_str(before);
        json.push_str(&["\"", &mark, sign, name, "\""].concat());
        rest = word.get(name.len()..).unwrap_or_default();
    }
    json.push_str(rest);
    (json, mark)
}

/// Of the string that `text` begins with, its quotes included.
fn string_len(text: &str) -> usize {
    let mut bytes = text.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return at + 1,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
    text.len()
}
