//! A server that returns what clients send, and a client.
//!
//! `cargo run --features io --example echo`

use dumbbell_udt::io::{Listener, Settings, Socket};
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = Settings::default();
    let listener = Listener::bind("127.0.0.1:0", &settings)?;
    let address = listener.local_addr();
    let server = thread::spawn(move || -> std::io::Result<()> {
        let mut peer = listener.accept(None)?;
        let mut buffer = [0; 65_536];
        loop {
            let read = peer.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            peer.write_all(&buffer[..read])?;
        }
    });
    let mut client = Socket::connect(address, &settings)?;
    client.write_all(b"hello")?;
    let mut answer = [0; 5];
    client.read_exact(&mut answer)?;
    println!("{}", String::from_utf8_lossy(&answer));
    // Dropping a socket closes it in the background; `close` waits until the peer has everything.
    client.close(Duration::from_secs(10))?;
    server.join().map_err(|_| "the server panicked")??;
    Ok(())
}
