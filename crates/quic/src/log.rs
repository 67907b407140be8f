//! qlog of a stack in a temporary file, as the log of a long run would fill the memory.
//!
//! qvis reads version 0.3 of qlog (draft-ietf-quic-qlog-main-schema-02, quic-events-02). Logs of later
//! drafts are copied with the names that version has for the same records, and packets with their size
//! where qvis takes it from.

use dumbbell_sim::EndpointLog;
use serde_json::{Map, Value, json};
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

/// Copies records, one a line, each after a record separator (RFC 7464), as version 0.3 has them.
fn copy_as_0_3(mut log: impl BufRead, out: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    let mut is_later = false;
    while log.read_line(&mut line)? > 0 {
        let mut record: Map<String, Value> = serde_json::from_str(line.trim_matches(SEPARATOR))?;
        if record.contains_key("trace") {
            is_later = record.contains_key("file_schema");
            convert_header(&mut record);
        } else {
            convert_event(&mut record, is_later);
        }
        write!(out, "{SEPARATOR}")?;
        serde_json::to_writer(&mut *out, &record)?;
        writeln!(out)?;
        line.clear();
    }
    Ok(())
}

const SEPARATOR: char = '\x1e';

/// Gives a header of later drafts (main-schema-13) the keys of version 0.3.
fn convert_header(header: &mut Map<String, Value>) {
    if header.remove("file_schema").is_some() {
        header.insert("qlog_version".to_owned(), "0.3".into());
        if let Some(trace) = header.get_mut("trace").and_then(Value::as_object_mut) {
            trace.remove("event_schemas");
            let fields = trace.get_mut("common_fields").and_then(Value::as_object_mut);
            if let Some(fields) = fields {
                // A clock of later drafts; times are those of the run.
                fields.insert("reference_time".to_owned(), 0.into());
                fields.insert("time_format".to_owned(), "relative".into());
            }
        }
    }
    if let Some(format) = header.remove("serialization_format") {
        header.insert("qlog_format".to_owned(), format);
    }
}

/// Gives an event its name in version 0.3, its packet the size where qvis looks for it, and its metrics
/// the units of qlog, ms and bits/s: quinn, whose logs are of version 0.3, has RTTs in seconds, and noq,
/// whose are of a later draft, pacing rates in bytes/s.
fn convert_event(event: &mut Map<String, Value>, is_later: bool) {
    let later = event.get("name").and_then(Value::as_str);
    if let Some(name) = later.and_then(|name| name.strip_prefix("quic:")).map(name_in_0_3) {
        event.insert("name".to_owned(), name.into());
    }
    let Some(data) = event.get_mut("data").and_then(Value::as_object_mut) else { return };
    if let Some(length) = data.get("header").and_then(|header| header.get("length")).cloned()
        && !data.contains_key("raw")
    {
        data.insert("raw".to_owned(), json!({ "length": length }));
    }
    for key in ["min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance"] {
        if !is_later && let Some(seconds) = data.get(key).and_then(Value::as_f64) {
            data.insert(key.to_owned(), (seconds * 1e3).into());
        }
    }
    if is_later && let Some(rate) = data.get("pacing_rate").and_then(Value::as_u64) {
        data.insert("pacing_rate".to_owned(), rate.saturating_mul(8).into());
    }
}

/// The name with its category of an event of later drafts (quic-events-12), which have one namespace.
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
