//! qlog of a stack in a temporary file, as the log of a long run would fill the memory.
//!
//! qvis reads version 0.3 of qlog (draft-ietf-quic-qlog-main-schema-02, quic-events-02). Logs of later
//! drafts are copied with the names that version has for the same records.

use dumbbell_sim::EndpointLog;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard};

/// A file without a name, or why it could not be made or written. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Log(Arc<Mutex<io::Result<BufWriter<File>>>>);

impl Log {
    /// An empty log.
    pub(crate) fn new() -> Log {
        Log(Arc::new(Mutex::new(tempfile::tempfile().map(BufWriter::new))))
    }

    fn file(&self) -> MutexGuard<'_, io::Result<BufWriter<File>>> {
        self.0.lock().expect("no code panics while it holds the file")
    }
}

/// Never fails, as stacks only warn of errors: [`EndpointLog::copy_to`] reports the first one.
impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.file();
        if let Ok(writer) = &mut *file
            && let Err(error) = writer.write_all(bytes)
        {
            *file = Err(error);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl EndpointLog for Log {
    fn copy_to(&self, out: &mut dyn Write) -> io::Result<()> {
        match &mut *self.file() {
            Ok(writer) => {
                writer.flush()?;
                let file = writer.get_mut();
                file.rewind()?;
                copy_as_0_3(BufReader::new(&*file), out)?;
                file.seek(SeekFrom::End(0)).map(drop)
            }
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

/// How the header of later drafts (main-schema-13) begins, and that of version 0.3.
const LATER_HEADER: &str =
    r#""file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"#;
const HEADER: &str = r#""qlog_version":"0.3","qlog_format":"#;
/// How the name of an event begins in later drafts (quic-events-12), which have one namespace.
const EVENT: &str = r#""name":"quic:"#;

/// Copies records, one a line, with the names of version 0.3.
fn copy_as_0_3(mut log: impl BufRead, out: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    while log.read_line(&mut line)? > 0 {
        if line.contains(LATER_HEADER) {
            line = line.replacen(LATER_HEADER, HEADER, 1);
        }
        match line.split_once(EVENT) {
            Some((before, after)) => {
                let name = after.split('"').next().unwrap_or_default();
                let rest = &after[name.len()..];
                write!(out, r#"{before}"name":"{}{rest}"#, name_in_0_3(name))?;
            }
            None => out.write_all(line.as_bytes())?,
        }
        line.clear();
    }
    Ok(())
}

/// An event's name with its category in version 0.3.
fn name_in_0_3(name: &str) -> String {
    let (category, name) = match name {
        "recovery_metrics_updated" => ("recovery", "metrics_updated"),
        "recovery_parameters_set" => ("recovery", "parameters_set"),
        "timer_updated" => ("recovery", "loss_timer_updated"),
        "packet_lost" | "marked_for_retransmit" | "congestion_state_updated" => ("recovery", name),
        "key_updated" | "key_retired" => ("security", name),
        "server_listening"
        | "connection_started"
        | "connection_closed"
        | "connection_id_updated"
        | "connection_state_updated"
        | "spin_bit_updated"
        | "mtu_updated" => ("connectivity", name),
        _ => ("transport", name),
    };
    format!("{category}:{name}")
}
