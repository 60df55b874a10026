/* What the event loop asks of sockets by their descriptors: what `direct.py` says.
 *
 * socket.recv makes room for the most that may come and gives back what is too much, parses its
 * arguments from a tuple, and lets go of the interpreter lock around a call that never waits.
 * For an event of a stream, of some hundred bytes, that is most of what the call costs.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define MOST_READ (64 * 1024)
#define MOST_EVENTS 256
#define EVENT_BITS 16

static char room[MOST_READ]; /* the interpreter lock is held until its bytes are copied */

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

/* The data of the chunk that begins at `at` and lies whole before `end`: their size, 0 where there
 * is no such chunk, or one with a size line that most servers would write otherwise. */
static Py_ssize_t chunk_at(const char *at, const char *end, const char **data) {
    Py_ssize_t size = 0;
    const char *digit = at;
    for (; digit < end && digit - at < 5; digit++) {
        if (*digit >= '0' && *digit <= '9')
            size = size * 16 + (*digit - '0');
        else if (*digit >= 'a' && *digit <= 'f')
            size = size * 16 + (*digit - 'a' + 10);
        else
            break;
    }
    if (digit == at || *at == '0' || end - digit < size + 4) return 0;
    if (digit[0] != '\r' || digit[1] != '\n') return 0;
    *data = digit + 2;
    return (*data)[size] == '\r' && (*data)[size + 1] == '\n' ? size : 0;
}

/* What `Tail.take` says of all events but the last of a stream. */
static int may_end_stream(const char *data, Py_ssize_t size) {
    return size <= 5 || data[size - 3] == ']' || data[size - 5] == ']';
}

/* How many bytes of data stand in `count` bytes that are whole chunks and no end of a stream; 0 for
 * any others. Where `to` is given, they are copied there. */
static Py_ssize_t walk(const char *at, Py_ssize_t count, char *to) {
    const char *end = at + count, *data;
    Py_ssize_t sum = 0;
    while (at < end) {
        Py_ssize_t size = chunk_at(at, end, &data);
        if (size == 0 || may_end_stream(data, size)) return 0;
        if (to != NULL) memcpy(to + sum, data, (size_t)size);
        sum += size;
        at = data + size + 2;
    }
    return sum;
}

static PyObject *direct_carry(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 4 || !PyByteArray_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "carry(fd, to, kept, most)");
        return NULL;
    }
    int fd = as_descriptor(args[0]);
    if (fd < 0) return NULL;
    int to = as_descriptor(args[1]);
    if (to < 0) return NULL;
    PyObject *kept = args[2];
    Py_ssize_t most = PyLong_AsSsize_t(args[3]);
    if (most == -1 && PyErr_Occurred()) return NULL;
    ssize_t count = recv(fd, room, sizeof room, MSG_DONTWAIT);
    if (count < 0) {
        if (would_block()) Py_RETURN_NONE;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_ssize_t had = PyByteArray_GET_SIZE(kept);
    Py_ssize_t more = walk(room, count, NULL);
    int passes = more > 0 && had + more <= most && PyByteArray_Resize(kept, had + more) == 0;
    ssize_t sent = passes ? send(to, room, (size_t)count, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    if (sent <= 0) { /* whoever looks at it comes upon what prevents it */
        PyErr_Clear();
        if (passes && PyByteArray_Resize(kept, had) < 0) PyErr_Clear(); /* to shrink can't fail */
        return PyBytes_FromStringAndSize(room, count);
    }
    walk(room, count, PyByteArray_AS_STRING(kept) + had);
    if (sent == count) return PyLong_FromSsize_t(more);
    return Py_BuildValue("(ny#)", more, room + sent, (Py_ssize_t)(count - sent));
}

static PyObject *direct_wait(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    struct epoll_event events[MOST_EVENTS]; /* not shared: others may run while it waits */
    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "wait(epoll, seconds, most)");
        return NULL;
    }
    int fd = as_descriptor(args[0]);
    if (fd < 0) return NULL;
    double seconds = PyFloat_AsDouble(args[1]);
    if (seconds == -1.0 && PyErr_Occurred()) return NULL;
    long most = PyLong_AsLong(args[2]);
    if (most == -1 && PyErr_Occurred()) return NULL;
    if (most < 1 || most > MOST_EVENTS || !(seconds < INT_MAX / 1000.0)) {
        PyErr_SetString(PyExc_ValueError, "too much to wait for");
        return NULL;
    }
    int count;
    if (seconds == 0.0) { /* no other thread need come in between */
        count = epoll_wait(fd, events, (int)most, 0);
    } else {
        double whole = seconds * 1000.0;
        int milliseconds = seconds < 0.0 ? -1 : (int)whole + (whole > (int)whole);
        Py_BEGIN_ALLOW_THREADS
        count = epoll_wait(fd, events, (int)most, milliseconds);
        Py_END_ALLOW_THREADS
    }
    if (count < 0) {
        if (errno != EINTR) return PyErr_SetFromErrno(PyExc_OSError);
        if (PyErr_CheckSignals() < 0) return NULL;
        count = 0;
    }
    PyObject *ready = PyList_New(count);
    if (ready == NULL) return NULL;
    for (int at = 0; at < count; at++) {
        long one = ((long)events[at].data.fd << EVENT_BITS) | (events[at].events & 0xffff);
        PyObject *number = PyLong_FromLong(one);
        if (number == NULL) {
            Py_DECREF(ready);
            return NULL;
        }
        PyList_SET_ITEM(ready, at, number);
    }
    return ready;
}

static PyMethodDef functions[] = {
    {"carry", (PyCFunction)(void (*)(void))direct_carry, METH_FASTCALL, NULL},
    {"recv", direct_recv, METH_O, NULL},
    {"send", (PyCFunction)(void (*)(void))direct_send, METH_FASTCALL, NULL},
    {"wait", (PyCFunction)(void (*)(void))direct_wait, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "llmgw.daemon._direct", NULL, 0, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__direct(void) { return PyModule_Create(&definition); }
