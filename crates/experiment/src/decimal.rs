//! Exact decimal numbers, as texts have them.

/// A decimal number: its digits times a power of ten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    /// Digits, the first one most significant; none for zero.
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// The number at the beginning of a text, such as `-1.5e3`, and the rest of the text.
    ///
    /// An exponent has at most three digits.
    pub(crate) fn split(text: &str) -> Option<(Decimal, &str)> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let whole = leading_digits(unsigned);
        let fraction = unsigned[whole.len()..].strip_prefix('.').map(leading_digits);
        let fraction_digits = fraction.unwrap_or_default();
        if whole.is_empty() && fraction_digits.is_empty() {
            return None;
        }
        let mantissa = whole.len() + fraction.map_or(0, |digits| 1 + digits.len());
        let (exponent, length) = exponent(&unsigned[mantissa..]);
        let digits = whole.bytes().chain(fraction_digits.bytes()).map(|digit| digit - b'0');
        let decimal = Decimal {
            is_negative: text.starts_with('-'),
            digits: digits.skip_while(|&digit| digit == 0).collect(),
            exponent: exponent - fraction_digits.len() as i64,
        };
        Some((decimal, &unsigned[mantissa + length..]))
    }

    /// Whether the number is less than zero.
    pub(crate) fn is_negative(&self) -> bool {
        self.is_negative && !self.digits.is_empty()
    }

    /// The number times a power of ten.
    pub(crate) fn scaled(mut self, exponent: i64) -> Decimal {
        self.exponent += exponent;
        self
    }

    /// The number times a whole one.
    pub(crate) fn times(&self, factor: u64) -> Decimal {
        let mut carry = 0_u128;
        let mut digits: Vec<u8> = Vec::new();
        for &digit in self.digits.iter().rev() {
            carry += u128::from(digit) * u128::from(factor);
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
        digits.reverse();
        Decimal { digits, ..*self }
    }

    /// The nearest whole number, half to even; `None` if the exact value exceeds `max`. The sign is
    /// ignored.
    pub(crate) fn round(&self, max: u64) -> Option<u64> {
        let whole_digits = self.digits.len() as i64 + self.exponent;
        if self.digits.is_empty() || whole_digits < 0 {
            return Some(0);
        }
        let (mut whole, mut at) = (0_u64, 0);
        while at < whole_digits {
            let digit = self.digits.get(at as usize).copied().unwrap_or_default();
            whole = whole.checked_mul(10)?.checked_add(u64::from(digit))?;
            if whole > max {
                return None;
            }
            at += 1;
        }
        let fraction = self.digits.get(at as usize..).unwrap_or_default();
        if whole == max && fraction.iter().any(|&digit| digit > 0) {
            return None;
        }
        let first = fraction.first().copied().unwrap_or_default();
        let is_above_half = first > 5 || (first == 5 && fraction[1..].iter().any(|&d| d > 0));
        let is_tie = first == 5 && !is_above_half;
        Some(whole + u64::from(is_above_half || (is_tie && whole % 2 == 1)))
    }

    /// The nearest floating-point number.
    pub(crate) fn to_f64(&self) -> f64 {
        let digits: String = self.digits.iter().map(|&digit| char::from(b'0' + digit)).collect();
        let text =
            format!("{}0{digits}e{}", if self.is_negative { "-" } else { "" }, self.exponent);
        text.parse().unwrap_or(f64::NAN) // Always a number: digits and an exponent.
    }
}

fn leading_digits(text: &str) -> &str {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    &text[..end]
}

/// The exponent at the beginning of a text and its length; 0 and 0 if there is none.
fn exponent(text: &str) -> (i64, usize) {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return (0, 0) };
    let digits = leading_digits(rest.strip_prefix(['+', '-']).unwrap_or(rest));
    let digits = &digits[..digits.len().min(3)];
    let Ok(exponent) = digits.parse::<i64>() else { return (0, 0) };
    let sign = usize::from(rest.starts_with(['+', '-']));
    (if rest.starts_with('-') { -exponent } else { exponent }, 1 + sign + digits.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::split(text).expect("a number").0
    }

    #[test]
    fn a_number_ends_where_its_unit_begins() {
        for (text, rest) in
            [("1.5 s", " s"), ("2.s", "s"), (".5e2", ""), ("1e", "e"), ("3eV", "eV")]
        {
            assert_eq!(Decimal::split(text).expect(text).1, rest, "{text}");
        }
        for text in ["", "s", ".", "-", "e5"] {
            assert_eq!(Decimal::split(text), None, "{text}");
        }
    }

    #[test]
    fn products_are_exact() {
        assert_eq!(decimal("0.001").times(1_000_000_000).round(u64::MAX), Some(1_000_000));
        assert_eq!(decimal("12.34").times(60).round(u64::MAX), Some(740));
        assert_eq!(decimal("0.05").round(u64::MAX), Some(0));
        assert_eq!(decimal("0.5").times(3).round(u64::MAX), Some(2));
    }

    #[test]
    fn the_maximum_itself_is_valid() {
        assert_eq!(decimal("1e3").round(1000), Some(1000));
        assert_eq!(decimal("1000.0000001").round(1000), None);
        assert_eq!(decimal("1e999").round(u64::MAX), None);
        assert_eq!(decimal("0e999").round(1000), Some(0));
    }

    #[test]
    fn the_nearest_float_is_that_of_the_text() {
        assert_eq!(decimal("-0.1").to_f64(), -0.1);
        assert_eq!(decimal("0.01").scaled(-2).to_f64(), 1e-4);
    }
}
