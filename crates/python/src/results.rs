//! The winners of many headers, for numpy and for Arrow.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use classyard_arrow::{NO_RULE, Output, Winners, action_names};
use pyo3::exceptions::{PyBufferError, PyIndexError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::capsules;

/// The winners of headers, one for each row.
///
/// `rule`, `action_ids`, `matched` and `has_header` are arrays for numpy. The result itself
/// is Arrow data with the columns `matched`, `rule` and `action`, where rows without a match
/// or without a header are null: `pyarrow.record_batch(result)`, `polars.DataFrame(result)`.
///
/// >>> import classyard, numpy
/// >>> table = classyard.Table(classyard.Policy.from_rules("ipv4-5tuple", ["permit dport=80"]))
/// >>> result = table.classify(dport=numpy.array([80, 81], dtype="u2"))
/// >>> numpy.asarray(result.matched)
/// array([ True, False])
/// >>> result.actions()
/// ['permit', None]
#[pyclass(frozen, module = "classyard")]
pub(crate) struct Result {
    rules: ScalarBuffer<u32>,
    actions: ScalarBuffer<u32>,
    has_header: Option<BooleanBuffer>,
    names: Arc<Vec<String>>,
    version: u64,
    other_family_rows: usize,
}

impl Result {
    /// The columns that lookups compute for a result.
    pub(crate) const OUTPUTS: [Output; 3] = [Output::Matched, Output::Rule, Output::Action];

    /// Joins the winners of chunks.
    pub(crate) fn new(chunks: Vec<Winners>, names: Arc<Vec<String>>, version: u64) -> Result {
        let rows: usize = chunks.iter().map(Winners::rows).sum();
        let other_family_rows = chunks.iter().map(Winners::other_family_rows).sum();
        let has_nulls = chunks.iter().any(|chunk| chunk.headers().is_some());
        let has_header = has_nulls.then(|| {
            let rows = chunks.iter().flat_map(|chunk| {
                let headers = chunk.headers();
                (0..chunk.rows()).map(move |row| headers.is_none_or(|h| h.is_valid(row)))
            });
            rows.collect::<BooleanBuffer>()
        });
        // The numbers of a single chunk are not copied.
        let mut chunks = chunks.into_iter().map(Winners::into_numbers);
        let (mut rules, mut actions): (Vec<u32>, Vec<u32>) = chunks.next().unwrap_or_default();
        rules.reserve(rows - rules.len());
        actions.reserve(rows - actions.len());
        for (more_rules, more_actions) in chunks {
            rules.extend(more_rules);
            actions.extend(more_actions);
        }
        Result {
            rules: rules.into(),
            actions: actions.into(),
            has_header,
            names,
            version,
            other_family_rows,
        }
    }

    fn matches(&self) -> BooleanBuffer {
        self.rules.iter().map(|&rule| rule != NO_RULE).collect()
    }

    fn batch(&self) -> RecordBatch {
        let matches = self.matches();
        let headers = self.has_header.clone().map(NullBuffer::new);
        let matched = BooleanArray::new(matches.clone(), headers);
        let nulls =
            || (matches.count_set_bits() < matches.len()).then(|| NullBuffer::new(matches.clone()));
        let rules = UInt32Array::new(self.rules.clone(), nulls());
        let actions = UInt32Array::new(self.actions.clone(), nulls());
        let actions = action_names(&actions, &self.names);
        let fields = [
            Field::new("matched", DataType::Boolean, true),
            Field::new("rule", DataType::UInt32, true),
            Field::new("action", actions.data_type().clone(), true),
        ];
        let columns: Vec<ArrayRef> = vec![Arc::new(matched), Arc::new(rules), Arc::new(actions)];
        let schema = Arc::new(Schema::new(fields.to_vec()));
        RecordBatch::try_new(schema, columns).expect("columns of one length")
    }
}

#[pymethods]
impl Result {
    fn __len__(&self) -> usize {
        self.rules.len()
    }

    fn __repr__(&self) -> String {
        let matches = self.rules.iter().filter(|&&rule| rule != NO_RULE).count();
        format!(
            "<classyard.Result of {} rows, {matches} with a match>",
            self.rules.len()
        )
    }

    /// The id of each row's winner (uint32), or `classyard.NO_RULE` (4294967295).
    #[getter]
    fn rule(&self) -> Array {
        Array::of_numbers(&self.rules)
    }

    /// The number of each winner's action (uint32), or `classyard.NO_RULE`. `action_names` has
    /// the names.
    #[getter]
    fn action_ids(&self) -> Array {
        Array::of_numbers(&self.actions)
    }

    /// True in rows that a rule matches (bool).
    #[getter]
    fn matched(&self) -> Array {
        Array::of_flags(self.rules.iter().map(|&rule| rule != NO_RULE))
    }

    /// False in rows without a header: a column is null there, or the policy has no rules for
    /// the IP version (bool).
    #[getter]
    fn has_header(&self) -> Array {
        match &self.has_header {
            None => Array::of_flags((0..self.rules.len()).map(|_| true)),
            Some(rows) => Array::of_flags(rows.iter()),
        }
    }

    /// The number of rows whose IP version the policy has no rules for.
    #[getter]
    fn other_family_rows(&self) -> usize {
        self.other_family_rows
    }

    /// The names of all actions, by their number.
    #[getter]
    fn action_names(&self) -> Vec<String> {
        self.names.to_vec()
    }

    /// The version of the rules: the number of transactions before the lookup.
    #[getter]
    fn version(&self) -> u64 {
        self.version
    }

    /// Returns the name of each winner's action as a list, with None in rows without a match.
    fn actions<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let names = self
            .names
            .iter()
            .map(|name| name.into_pyobject(py).map(Bound::into_any));
        let names = names.collect::<std::result::Result<Vec<_>, _>>()?;
        let actions = self.actions.iter();
        Ok(actions
            .map(|&action| names.get(action as usize).cloned())
            .collect())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // The schema is a request that need not be followed.
        drop(requested_schema);
        capsules::array_capsules(py, &self.batch())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        capsules::stream_capsule(py, &self.batch())
    }
}

/// An array of numbers for numpy: `numpy.asarray(array)` does not copy it. It cannot be
/// changed.
#[pyclass(frozen, module = "classyard")]
pub(crate) struct Array {
    bytes: Buffer,
    format: &'static CStr,
    item_size: usize,
    /// The number of items and the size of an item, as the buffer protocol needs them.
    shape: [ffi::Py_ssize_t; 1],
    strides: [ffi::Py_ssize_t; 1],
}

impl Array {
    fn new(bytes: Buffer, format: &'static CStr, item_size: usize) -> Array {
        let signed = |number: usize| ffi::Py_ssize_t::try_from(number).expect("a size in memory");
        Array {
            shape: [signed(bytes.len() / item_size)],
            strides: [signed(item_size)],
            bytes,
            format,
            item_size,
        }
    }

    fn of_numbers(numbers: &ScalarBuffer<u32>) -> Array {
        Array::new(numbers.inner().clone(), c"I", 4)
    }

    fn of_flags(flags: impl Iterator<Item = bool>) -> Array {
        let bytes: Vec<u8> = flags.map(u8::from).collect();
        Array::new(Buffer::from_vec(bytes), c"?", 1)
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.item_size
    }

    fn item(&self, py: Python<'_>, index: usize) -> PyResult<Py<PyAny>> {
        let bytes = &self.bytes[index * self.item_size..][..self.item_size];
        match <[u8; 4]>::try_from(bytes) {
            Ok(bytes) => Ok(u32::from_ne_bytes(bytes)
                .into_pyobject(py)?
                .into_any()
                .unbind()),
            Err(_) => Ok((bytes[0] != 0)
                .into_pyobject(py)?
                .to_owned()
                .into_any()
                .unbind()),
        }
    }
}

#[pymethods]
impl Array {
    fn __len__(&self) -> usize {
        self.len()
    }

    fn __getitem__(&self, py: Python<'_>, index: isize) -> PyResult<Py<PyAny>> {
        let length = self.len();
        let place = match index {
            0.. => Some(index.unsigned_abs()),
            _ => length.checked_sub(index.unsigned_abs()),
        };
        match place.filter(|&place| place < length) {
            Some(place) => self.item(py, place),
            None => Err(PyIndexError::new_err(format!(
                "index {index} of {length} items"
            ))),
        }
    }

    /// Returns the items as a list.
    fn tolist(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        (0..self.len()).map(|index| self.item(py, index)).collect()
    }

    /// # Safety
    /// `view` points to a structure of Python, which this function fills.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view"));
        }
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("the array cannot be changed"));
        }
        let has = |flag| flags & flag == flag;
        let array = slf.get();
        // SAFETY: Python gives a view that may be written. Its pointers are into the array,
        // which is never changed and which the view keeps alive by `obj`.
        unsafe {
            (*view).buf = array.bytes.as_ptr().cast_mut().cast::<c_void>();
            (*view).len = ffi::Py_ssize_t::try_from(array.bytes.len()).unwrap_or(0);
            (*view).readonly = 1;
            (*view).itemsize = array.strides[0];
            (*view).format = match has(ffi::PyBUF_FORMAT) {
                true => array.format.as_ptr().cast_mut(),
                false => std::ptr::null_mut(),
            };
            (*view).ndim = 1;
            (*view).shape = match has(ffi::PyBUF_ND) {
                true => array.shape.as_ptr().cast_mut(),
                false => std::ptr::null_mut(),
            };
            (*view).strides = match has(ffi::PyBUF_STRIDES) {
                true => array.strides.as_ptr().cast_mut(),
                false => std::ptr::null_mut(),
            };
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = std::ptr::null_mut();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }
}
