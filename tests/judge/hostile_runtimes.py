"""Java and JavaScript programs that try what no program may; each prints HARM where it succeeds,
else the answer 3.

Written for this suite; safe to run only inside the sandbox.
"""

JAVA = """
package contest.tasks;
import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
public class Task { public static void main(String[] args) throws Exception {
    Scanner in = new Scanner(System.in);
    int number = in.nextInt(), other = in.nextInt();
    switch (number) {
        case 0: Probes.main(args); break;
        case 1: Recurses.main(args); break;
        case 2: TakesThreads.main(args); break;
        case 3: TakesHeap.main(args); break;
        case 4: Spins.main(args); break;
        case 5: throw new Error();
        default:
            ExecutorService pool = Executors.newFixedThreadPool(4);
            System.out.println(pool.submit(() -> number + other).get());
            pool.shutdown();
    }
} }
class Probes {
    interface Try { Object run() throws Throwable; }
    static void harm(String what, Try attempt) {
        try { Object got = attempt.run(); if (got != null) System.out.println("HARM " + what + ": \
" + got); }
        catch (Throwable refused) { }
    }
    public static void main(String[] args) throws Exception {
        harm("fork", () -> new ProcessBuilder("/bin/true").start());
        harm("fork by another way", () -> {
            System.setProperty("jdk.lang.Process.launchMechanism", "FORK");
            return new ProcessBuilder(System.getProperty("java.home") + "/bin/java", \
"-version").start();
        });
        harm("connect", () -> new Socket("127.0.0.1", 80));
        harm("listen", () -> new ServerSocket(0));
        harm("datagram", () -> new DatagramSocket());
        harm("users", () -> Files.readString(Path.of("/etc/passwd")));
        harm("home", () -> new File("/root").list().length > 1 ? "listed" : null);
        harm("processes", () -> new File("/proc/1").exists() ? "seen" : null);
        harm("memory", () -> new RandomAccessFile("/proc/self/mem", "rw"));
        harm("any descriptor", () -> {
            var field = FileDescriptor.class.getDeclaredField("fd");
            field.setAccessible(true);
            return field;
        });
        harm("write outside", () -> Files.writeString(Path.of("/usr/lib/harm"), "x"));
        harm("write beside java", () -> Files.writeString(Path.of(System.getProperty("java.home"), \
"harm"), "x"));
        harm("native code", () -> {
            Path copy = Path.of("copy.so").toAbsolutePath();
            Files.copy(Path.of(System.getProperty("java.home"), "lib/libzip.so"), copy);
            System.load(copy.toString());
            return copy;
        });
        harm("signals", () -> ProcessHandle.of(1).map(ProcessHandle::destroyForcibly)\
.orElse(false) ? 1 : null);
        System.out.println(3);
    }
}
class Spins { public static void main(String[] a) {
    System.out.println(3);
    for (int i = 0; i < 4; i++) new Thread(() -> { for (;;) { } }).start();
} }
class TakesHeap { public static void main(String[] a) {
    List<byte[]> held = new ArrayList<>();
    for (;;) { byte[] more = new byte[8 << 20]; Arrays.fill(more, (byte) 1); held.add(more); }
} }
class TakesThreads { public static void main(String[] a) throws Exception {
    int started = 0;
    try {
        for (; started < 5000; started++) {
            Runnable waits = () -> { try { Thread.sleep(100000); \
} catch (InterruptedException e) { } };
            Thread thread = new Thread(null, waits, "t", 1 << 16);
            thread.setDaemon(true);
            thread.start();
        }
    } catch (Throwable refused) { }
    System.out.println(started < 300 ? "3" : "HARM " + started + " threads");
} }
class Recurses {
    static int depth(int n) { return n == 0 ? 0 : 1 + depth(n - 1); }
    public static void main(String[] args) { System.out.println(depth(200000) - 199997); }
}
"""
"""What it does depends on the first number of its input; with more than 5 it adds them,
in a thread.
"""

JAVASCRIPT_PROBES = """
const fs = require('fs'), path = require('path');
function harm(what, attempt) {
    try { const got = attempt(); if (got) console.log('HARM ' + what + ': ' + got); \
} catch (refused) { }
}
const child = require('child_process');
harm('fork', () => child.execSync('echo forked').toString());
harm('spawn', () => child.spawnSync(process.execPath, ['-e', '1']).pid);
harm('users', () => fs.readFileSync('/etc/passwd', 'utf8').length);
harm('home', () => fs.readdirSync('/root').length > 1 && 'listed');
harm('processes', () => fs.existsSync('/proc/1'));
harm('memory', () => fs.openSync('/proc/self/mem', 'r+'));
for (let fd = 3; fd < 64; fd++) harm('descriptor ' + fd, \
() => fs.fstatSync(fd).isFile() && fs.writeSync(fd, '3'));
harm('write outside', () => { fs.writeFileSync('/usr/lib/harm', 'x'); return 1; });
harm('native code', () => {
    const source = fs.readdirSync('/usr/lib/x86_64-linux-gnu').find((name) => \
name.startsWith('libz.so.1'));
    fs.copyFileSync('/usr/lib/x86_64-linux-gnu/' + source, 'copy.node');
    process.dlopen({exports: {}}, path.resolve('copy.node'), 0);
    return 1;
});
harm('signal to the sandbox', () => process.kill(1, 9) && process.pid !== 1 && 0);
harm('signal to the parent', () => process.kill(process.ppid, 9) && 0);
const net = require('net'), dgram = require('dgram');
net.connect(80, '127.0.0.1').on('connect', () => console.log('HARM connected')).on('error', \
() => 0);
net.createServer().on('error', () => 0).listen(0, () => { console.log('HARM listens'); \
process.exit(); });
const bound = () => { console.log('HARM bound'); process.exit(); };
harm('datagram', () => { dgram.createSocket('udp4').on('error', () => 0).bind(0, bound); });
console.log(3);
"""
JAVASCRIPT_SPINS_IN_WORKERS = """
const { Worker } = require('worker_threads');
console.log(3);
for (let i = 0; i < 4; i++) new Worker('for (;;) { }', { eval: true });
"""
JAVASCRIPT_TAKES_HEAP = (
    "const held = []; for (;;) held.push(new Array(1 << 16).fill(held.length + 0.5));"
)
JAVASCRIPT_TAKES_BUFFERS = "const held = []; for (;;) held.push(Buffer.alloc(8 << 20, 1));"
JAVASCRIPT_RECURSES = (
    "const depth = (n) => n ? 1 + depth(n - 1) : 0; console.log(depth(100000) - 99997);"
)
JAVASCRIPT_ADDS = """
const [a, b] = require('fs').readFileSync('/dev/stdin', 'utf8').split(/\\s+/).map(Number);
console.log(a + b);
"""
LEAVES_A_FILE = "require('fs').writeFileSync('left', 'x'); console.log(3);"
FINDS_A_FILE = "console.log(require('fs').existsSync('left') ? 'HARM left' : 3);"
