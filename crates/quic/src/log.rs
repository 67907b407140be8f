//! qlog of a stack in a temporary file, as the log of a long run would fill the memory.

use dumbbell_sim::EndpointLog;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
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
                io::copy(file, out)?;
                file.seek(SeekFrom::End(0)).map(drop)
            }
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}
