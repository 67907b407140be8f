//! Input generation without a fuzzer: random inputs and mutations of earlier ones.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Size of the corpus.
const CORPUS_SIZE: usize = 512;
const MAX_LENGTH: usize = 400;

/// Input generator, deterministic for a seed.
pub struct Search {
    random: SplitMix64,
    corpus: Vec<Vec<u8>>,
}

impl Search {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Search {
        Search { random: SplitMix64::seed_from_u64(seed), corpus: Vec::new() }
    }

    fn below(&mut self, end: usize) -> usize {
        (self.random.next_u64() % end.max(1) as u64) as usize
    }

    fn fresh(&mut self) -> Vec<u8> {
        let len = 1 + self.below(MAX_LENGTH);
        (0..len.div_ceil(8)).flat_map(|_| self.random.next_u64().to_le_bytes()).take(len).collect()
    }

    /// Passes the next input to `run`.
    pub fn step(&mut self, run: impl FnOnce(&[u8])) {
        if self.corpus.len() < CORPUS_SIZE {
            let input = self.fresh();
            run(&input);
            return self.corpus.push(input);
        }
        let at = self.below(CORPUS_SIZE);
        if self.below(16) == 0 {
            self.corpus[at] = self.fresh();
        }
        let mut input = std::mem::take(&mut self.corpus[at]);
        for _ in 0..=self.below(4) {
            self.mutate(&mut input);
        }
        run(&input);
        self.corpus[at] = input;
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len());
        match self.below(6) {
            0 | 1 if !input.is_empty() => input[at] = self.random.next_u64() as u8,
            2 if !input.is_empty() => input[at] ^= 1 << self.below(8),
            3 => input.truncate(at + 1),
            4 => {
                // Insert a part of another input.
                let other = self.below(CORPUS_SIZE);
                let piece = &self.corpus[other];
                let from = if piece.is_empty() { 0 } else { at % piece.len() };
                let piece = piece[from..(from + 40).min(piece.len())].to_vec();
                input.splice(at..at, piece);
                input.truncate(MAX_LENGTH);
            }
            _ => input.insert(at, self.random.next_u64() as u8),
        }
    }
}

/// `main` of a target: runs the number of inputs in the first argument (100,000) with the seed in the
/// second (1), and prints a summary.
///
/// # Errors
/// If an argument is not a number.
pub fn main(name: &str, run: fn(&[u8])) -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let inputs: u64 = arguments.next().as_deref().unwrap_or("100000").parse()?;
    let seed: u64 = arguments.next().as_deref().unwrap_or("1").parse()?;
    let began = std::time::Instant::now();
    let mut search = Search::new(seed);
    for _ in 0..inputs {
        search.step(run);
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("{name}: {inputs} inputs from seed {seed} in {seconds:.0} s, {}", peak_memory());
    Ok(())
}

/// Peak memory of the process, from Linux's /proc.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(String::new, |size| format!("at most {} of memory", size.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_a_packet_or_an_error() {
        let mut search = Search::new(2);
        (0..20_000).for_each(|_| search.step(crate::udt_codec::run));
    }

    #[test]
    fn noise_accepts_nothing_without_the_key() {
        let mut search = Search::new(2);
        (0..2_000).for_each(|_| search.step(crate::udt_noise::run));
    }

    #[test]
    fn the_file_protocol_survives_arbitrary_frames() {
        let mut search = Search::new(2);
        (0..20_000).for_each(|_| search.step(crate::transfer_peer::run));
    }

    #[test]
    fn a_udt_connection_survives_arbitrary_events() {
        let mut search = Search::new(2);
        (0..20_000).for_each(|_| search.step(crate::udt_engine::run));
    }
}
