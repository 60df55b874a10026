/* recv and send of a non-blocking stream socket by its descriptor: what `direct.py` says.
 *
 * socket.recv makes room for the most that may come and gives back what is too much, parses its
 * arguments from a tuple, and lets go of the interpreter lock around a call that never waits.
 * For an event of a stream, of some hundred bytes, that is most of what the call costs.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <sys/socket.h>

#define MOST_READ (64 * 1024)

static int would_block(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

static int as_descriptor(PyObject *arg) {
    long fd = PyLong_AsLong(arg);
    if (fd == -1 && PyErr_Occurred()) return -1;
    if (fd < 0 || fd > INT_MAX) {
        PyErr_SetString(PyExc_ValueError, "not a file descriptor");
        return -1;
    }
    return (int)fd;
}

static PyObject *direct_recv(PyObject *module, PyObject *arg) {
    static char room[MOST_READ]; /* the interpreter lock is held until its bytes are copied */
    int fd = as_descriptor(arg);
    if (fd < 0) return NULL;
    ssize_t count = recv(fd, room, sizeof room, MSG_DONTWAIT);
    if (count >= 0) return PyBytes_FromStringAndSize(room, count);
    if (would_block()) Py_RETURN_NONE;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *direct_send(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "send(fd, data)");
        return NULL;
    }
    int fd = as_descriptor(args[0]);
    if (fd < 0) return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(args[1], &view, PyBUF_SIMPLE) < 0) return NULL;
    ssize_t sent = send(fd, view.buf, (size_t)view.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    int failed = sent < 0 && !would_block();
    int number = errno;
    PyBuffer_Release(&view);
    if (failed) {
        errno = number;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return PyLong_FromSsize_t(sent < 0 ? 0 : sent);
}

static PyMethodDef functions[] = {
    {"recv", direct_recv, METH_O, NULL},
    {"send", (PyCFunction)(void (*)(void))direct_send, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "llmgw.daemon._direct", NULL, 0, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__direct(void) { return PyModule_Create(&definition); }
