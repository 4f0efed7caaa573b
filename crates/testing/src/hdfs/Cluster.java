// A cluster of HDFS in one process, for tests: a namenode and a datanode, on ports that are free.
//
//   java -cp CLASSES:LIBRARIES Cluster DIRECTORY
//
// It says "ready PORT", with the port of the namenode, when it serves. Then it does what it is told on its standard input,
// a line each, and answers with a line each: "ok", or "error" and why. It ends with its input, and removes the directory.

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;

public class Cluster {
    private static MiniDFSCluster cluster;
    private static MiniDFSCluster.DataNodeProperties stopped;

    public static void main(String[] arguments) throws Exception {
        // Its log is long, and would be on the standard output.
        Logger.getRootLogger().setLevel(Level.OFF);
        Configuration configuration = new Configuration();
        configuration.set("hdfs.minidfs.basedir", arguments[0] + "/data");
        // The smallest blocks that a server allows by default: files soon have several.
        configuration.setLong("dfs.blocksize", 1 << 20);
        // Files are closed before the datanode has told of their last block: waiting for that costs clients half a second.
        configuration.setInt("dfs.namenode.file.close.num-committed-allowed", 1);
        cluster = new MiniDFSCluster.Builder(configuration).numDataNodes(1).format(true).build();
        cluster.waitActive();
        System.out.println("ready " + cluster.getNameNodePort());
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            String answer;
            try {
                answer = obey(order.split(" "));
            } catch (Exception failure) {
                answer = "error " + failure.toString().replace('\n', ' ');
            }
            System.out.println(answer);
        }
        // Nothing of it is wanted any more: this does not wait for anything.
        FileUtil.fullyDelete(new File(arguments[0]));
        Runtime.getRuntime().halt(0);
    }

    private static String obey(String[] order) throws Exception {
        DistributedFileSystem files = cluster.getFileSystem();
        switch (order[0]) {
        case "safemode":
            boolean enters = order[1].equals("enter");
            files.setSafeMode(enters ? SafeModeAction.SAFEMODE_ENTER : SafeModeAction.SAFEMODE_LEAVE);
            return "ok";
        case "make":
            files.mkdirs(new Path(order[1]));
            files.setPermission(new Path(order[1]), new FsPermission(order[2]));
            return "ok";
        case "list":
            StringBuilder found = new StringBuilder("ok");
            for (FileStatus status : files.listStatus(new Path(order[1]))) {
                found.append(" " + status.getPath().getName() + "=" + status.getLen());
            }
            return found.toString();
        case "stop-datanode":
            stopped = cluster.stopDataNode(0);
            cluster.setDataNodeDead(stopped.getDatanode().getDatanodeId());
            return "ok";
        case "start-datanode":
            cluster.restartDataNode(stopped, true);
            cluster.waitActive();
            return "ok";
        default:
            return "error unknown order " + order[0];
        }
    }
}
