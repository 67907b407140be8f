//! Arbitrary input for what reads from the network: it may do anything but panic, loop, or take
//! memory without end.
//!
//! The bodies here take bytes. Under cargo-fuzz (`cargo +nightly fuzz run udt-engine`) libFuzzer
//! finds them; without it, on any Rust, the same targets run the seeded search of [`search`].

pub mod search;
pub mod udt_codec;
pub mod udt_engine;

/// Bytes taken from the front, one number after the other; zeros when they have run out.
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        head
    }

    fn u8(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }
}
