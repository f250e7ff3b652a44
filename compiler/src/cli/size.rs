//! Sizes on the command line, `4096`, `512MiB`, `1.5GiB`, `16K`, and other numbers.

use std::num::NonZeroUsize;

use slabplan_ir::Bytes;

/// Reads a size: bytes, or a number with K, M, G, T or KiB, MiB, GiB, TiB (both mean powers of 1024).
pub(super) fn parse_size(text: &str) -> Result<Bytes, String> {
    let remedy =
        || format!("`{text}` is not a size; write bytes or KiB, MiB, GiB: 4096, 512MiB, 1.5G");
    let text_trimmed = text.trim();
    let split = text_trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text_trimmed.len());
    let (number, unit) = text_trimmed.split_at(split);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(remedy()),
    };
    let overflow = |_| format!("`{text}` is more than 2^63 - 1 bytes");
    if let Ok(whole) = number.parse::<u64>() {
        return Bytes::new(whole)
            .and_then(|b| b.checked_mul(1 << shift))
            .map_err(overflow);
    }
    let value: f64 = number.parse().map_err(|_| remedy())?;
    let bytes = (value * (1u64 << shift) as f64).round();
    if bytes >= 9.2e18 {
        return Err(format!("`{text}` is more than 2^63 - 1 bytes"));
    }
    Bytes::new(bytes as u64).map_err(overflow)
}

/// Reads a part of the whole: above 0, at most 1.
pub(super) fn parse_fraction(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|f| 0.0 < *f && *f <= 1.0)
        .ok_or_else(|| {
            format!("`{text}` is not a fraction; write a number above 0, at most 1: 0.75")
        })
}

/// Reads a tolerance: a number that is not negative.
pub(super) fn parse_tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|t| 0.0 <= *t);
    number.ok_or_else(|| format!("`{text}` is not a tolerance; write 0 or a number above: 1e-3"))
}

/// Reads a number of threads.
pub(super) fn parse_threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a number of threads; write 1 or more"))
}

/// Reads `SPACE=SIZE`, the space by name or number.
pub(super) fn parse_capacity(text: &str) -> Result<(String, Bytes), String> {
    let (space, size) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not SPACE=SIZE, for example hbm=15.5GiB"))?;
    Ok((space.trim().to_owned(), parse_size(size)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        let bytes = |t: &str| parse_size(t).map(Bytes::get);
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("16K"), Ok(16384));
        assert_eq!(bytes("16KiB"), Ok(16384));
        assert_eq!(bytes("1.5GiB"), Ok(3 << 29));
        assert_eq!(bytes("2 MiB"), Ok(2 << 20));
        for bad in [
            "",
            "GiB",
            "12X",
            "-1",
            "1..5G",
            "99999999999999999999",
            "9000000T",
        ] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
