//! Columns on their way to Python.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A table that any library which speaks Arrow's PyCapsule interface reads without copying.
#[pyclass(frozen, module = "dumbbell._core")]
pub struct Table(RecordBatch);

impl Table {
    /// A table of named columns of one length.
    pub fn new(columns: Vec<(&'static str, ArrayRef)>) -> Result<Table, ArrowError> {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
            .map(Table)
    }
}

#[pymethods]
impl Table {
    /// The table as an Arrow C stream of one batch; `requested_schema` is only a wish in the
    /// interface's specification, and is not granted.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(
            py,
            FFI_ArrowArrayStream::new(Box::new(batches)),
            c"arrow_array_stream",
        )
    }

    /// How many rows there are.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }
}
