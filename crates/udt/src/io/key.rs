//! The pre-shared key of the encrypted mode, and its file.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Pre-shared key of the encrypted mode, 32 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub(super) [u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// A key from uniformly random bytes. A password is not suitable.
    pub const fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// A new random key.
    ///
    /// # Errors
    /// If the operating system has no random numbers.
    pub fn generate() -> io::Result<Key> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Key(bytes))
    }

    /// Parses 64 hexadecimal digits; `None` for other text.
    pub fn from_hex(text: &str) -> Option<Key> {
        let text = text.trim();
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Key(bytes))
    }

    /// Reads a key from a file: 64 hexadecimal digits.
    ///
    /// # Errors
    /// If it cannot be read, is not a key, or others than its owner may read or write it.
    pub fn read(file: &Path) -> io::Result<Key> {
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        let mut open = File::open(file)?;
        let mode = open.metadata()?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let why = format!("others may use the key, mode {mode:o}; chmod 600 its file");
            return Err(invalid(why));
        }
        let mut text = String::new();
        open.read_to_string(&mut text)?;
        Key::from_hex(&text).ok_or_else(|| invalid("a key is 64 hexadecimal digits".to_owned()))
    }

    /// Writes the key to a file that does not exist yet, and that only its owner can read.
    ///
    /// # Errors
    /// If the file exists, or cannot be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
        writeln!(open, "{}", self.to_hex())
    }

    /// The key as 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_conversion_to_hex_and_back() {
        let key = Key::generate().expect("there are random numbers");
        assert_eq!(Key::from_hex(&key.to_hex()), Some(key));
        assert_eq!(Key::from_hex("password"), None);
    }
}
