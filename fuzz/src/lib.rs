//! Fuzz targets for code that reads from the network: no input may cause a panic, an endless loop or
//! unlimited memory.
//!
//! Each target takes bytes. Under cargo-fuzz (`cargo +nightly fuzz run udt-engine`) libFuzzer generates
//! them; without it, on stable Rust, the same targets run the seeded search of [`search`].

pub mod bulk_engine;
pub mod search;
pub mod transfer_peer;
pub mod udt_codec;
pub mod udt_engine;
pub mod udt_noise;

/// Reads numbers from the front of the input; zeros at its end.
pub(crate) struct InputReader<'a>(&'a [u8]);

impl<'a> InputReader<'a> {
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
