//! Tables of results as Arrow record batches.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float32Array, Float64Array, RecordBatch, RecordBatchIterator,
    StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::ArrowError;
use dumbbell_sim::Column;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// A table that libraries read without copying through the Arrow PyCapsule interface.
#[pyclass(frozen, module = "dumbbell._core")]
pub struct Table(RecordBatch);

impl Table {
    /// A table of the columns; numeric vectors are moved, not copied.
    pub fn new(columns: Vec<(&'static str, Column)>) -> Result<Table, ArrowError> {
        let mut named = Vec::with_capacity(columns.len());
        for (name, column) in columns {
            named.push((name, array(column)?, true));
        }
        RecordBatch::try_from_iter_with_nullable(named).map(Table)
    }
}

fn array(column: Column) -> Result<ArrayRef, ArrowError> {
    Ok(match column {
        Column::U8(cells) => Arc::new(UInt8Array::from(cells)),
        Column::U32(cells) => Arc::new(UInt32Array::from(cells)),
        Column::U64(cells) => Arc::new(UInt64Array::from(cells)),
        Column::F32(cells) => Arc::new(Float32Array::from(cells)),
        Column::F64(cells) => Arc::new(Float64Array::from(cells)),
        Column::NullableF64(cells) => Arc::new(Float64Array::from(cells)),
        Column::Names { keys, names } => {
            let names = Arc::new(StringArray::from(names));
            Arc::new(DictionaryArray::<UInt32Type>::try_new(keys.into(), names)?)
        }
    })
}

#[pymethods]
impl Table {
    /// Exports the table as an Arrow C stream of one batch. `requested_schema` is ignored, as the
    /// specification of the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }
}
