// A stand-in for pulumi-language-nodejs of the official Pulumi release.
//
// The engine runs TypeScript programs through the official plugin, which no package registry has.
// Tests of the components in TypeScript use this stand-in if the official release is not installed.
// The stand-in runs programs with the runner of the SDK (@pulumi/pulumi/cmd/run), and writes packages
// with the official generator. It supports only npm as package manager, and returns "unimplemented"
// for debugging, templates and program generation.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

const version = "0.1.0-standin"

// Exit code of the SDK's runner after an error that the user has seen.
const messageShown = 32

type host struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	engine string
}

func (h *host) Handshake(
	_ context.Context, request *pulumirpc.LanguageHandshakeRequest,
) (*pulumirpc.LanguageHandshakeResponse, error) {
	h.engine = request.EngineAddress
	return &pulumirpc.LanguageHandshakeResponse{}, nil
}

func (h *host) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: version}, nil
}

// GetRequiredPackages returns the plugins of installed packages with "pulumi": {"resource": true} in
// their package.json.
func (h *host) GetRequiredPackages(
	_ context.Context, request *pulumirpc.GetRequiredPackagesRequest,
) (*pulumirpc.GetRequiredPackagesResponse, error) {
	modules := filepath.Join(request.Info.RootDirectory, "node_modules")
	files, _ := filepath.Glob(filepath.Join(modules, "*", "package.json"))
	scoped, _ := filepath.Glob(filepath.Join(modules, "@*", "*", "package.json"))
	found := &pulumirpc.GetRequiredPackagesResponse{}
	for _, file := range append(files, scoped...) {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var described struct {
			Name    string
			Version string
			Pulumi  struct {
				Resource     bool
				Name, Server string
				Version      string
			}
		}
		if err := json.Unmarshal(content, &described); err != nil || !described.Pulumi.Resource {
			continue
		}
		name, release := described.Pulumi.Name, described.Pulumi.Version
		if name == "" {
			name = strings.TrimPrefix(described.Name, "@pulumi/")
		}
		if release == "" {
			release = described.Version
		}
		found.Packages = append(found.Packages, &pulumirpc.PackageDependency{
			Name: name, Kind: "resource", Version: release, Server: described.Pulumi.Server,
		})
	}
	return found, nil
}

// Run runs the program until it ends. The program inherits the output streams of this process.
func (h *host) Run(
	ctx context.Context, request *pulumirpc.RunRequest,
) (*pulumirpc.RunResponse, error) {
	root := request.Info.RootDirectory
	runner := filepath.Join(root, "node_modules", "@pulumi", "pulumi", "cmd", "run")
	if _, err := os.Stat(runner); err != nil {
		return &pulumirpc.RunResponse{Error: "@pulumi/pulumi is not installed. Hint: run `npm install`"}, nil
	}
	// Without config, both maps are nil. JSON would contain null, which the SDK cannot read.
	config, err := json.Marshal(maps.Collect(maps.All(request.Config)))
	if err != nil {
		return nil, err
	}
	secrets, err := json.Marshal(append([]string{}, request.ConfigSecretKeys...))
	if err != nil {
		return nil, err
	}
	arguments := []string{
		runner,
		"--monitor", request.MonitorAddress,
		"--engine", h.engine,
		"--project", request.Project,
		"--stack", request.Stack,
		"--organization", request.Organization,
		"--pwd", request.Pwd,
		"--root-directory", root,
		"--parallel", strconv.Itoa(int(request.Parallel)),
	}
	if request.DryRun {
		arguments = append(arguments, "--dry-run")
	}
	arguments = append(arguments, request.Info.EntryPoint)
	program := exec.CommandContext(ctx, "node", append(arguments, request.Args...)...)
	program.Dir = request.Pwd
	program.Stdout, program.Stderr = os.Stdout, os.Stderr
	program.Env = append(os.Environ(),
		"PULUMI_CONFIG="+string(config),
		"PULUMI_CONFIG_SECRET_KEYS="+string(secrets),
		"PULUMI_NODEJS_TYPESCRIPT=true",
	)
	var failed *exec.ExitError
	switch err := program.Run(); {
	case err == nil:
		return &pulumirpc.RunResponse{}, nil
	case errors.As(err, &failed) && failed.ExitCode() == messageShown:
		return &pulumirpc.RunResponse{Bail: true}, nil
	default:
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("program: %v", err)}, nil
	}
}

// GeneratePackage writes the package of a provider's schema with the official generator.
func (h *host) GeneratePackage(
	_ context.Context, request *pulumirpc.GeneratePackageRequest,
) (*pulumirpc.GeneratePackageResponse, error) {
	client, err := schema.NewLoaderClient(request.LoaderTarget)
	if err != nil {
		return nil, err
	}
	loader := schema.NewCachedLoader(client)
	var spec schema.PackageSpec
	if err := json.Unmarshal([]byte(request.Schema), &spec); err != nil {
		return nil, err
	}
	bound, diagnostics, err := schema.BindSpec(
		spec, loader, schema.ValidationOptions{AllowDanglingReferences: true})
	if err != nil {
		return nil, err
	}
	answer := &pulumirpc.GeneratePackageResponse{
		Diagnostics: plugin.HclDiagnosticsToRPCDiagnostics(diagnostics),
	}
	if diagnostics.HasErrors() {
		return answer, nil
	}
	files, err := nodejs.GeneratePackage(
		"pulumi-language-nodejs", bound, request.ExtraFiles, request.LocalDependencies,
		request.Local, loader)
	if err != nil {
		return nil, err
	}
	for name, content := range files {
		path := filepath.Join(request.Directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// Link adds generated packages to the program's package.json as folders.
func (h *host) Link(
	ctx context.Context, request *pulumirpc.LinkRequest,
) (*pulumirpc.LinkResponse, error) {
	root := request.Info.RootDirectory
	var imports []string
	for _, linked := range request.Packages {
		content, err := os.ReadFile(filepath.Join(root, linked.Path, "package.json"))
		if err != nil {
			return nil, err
		}
		var described struct{ Name string }
		if err := json.Unmarshal(content, &described); err != nil {
			return nil, err
		}
		dependency := fmt.Sprintf("dependencies.%s=file:%s", described.Name, linked.Path)
		command := exec.CommandContext(ctx, "npm", "pkg", "set", dependency)
		command.Dir = root
		if output, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("npm pkg set: %w: %s", err, output)
		}
		name := strings.ReplaceAll(linked.Package.Name, "-", "_")
		imports = append(imports, fmt.Sprintf("import * as %s from %q;", name, described.Name))
	}
	return &pulumirpc.LinkResponse{ImportInstructions: strings.Join(imports, "\n")}, nil
}

// InstallDependencies runs npm; its output goes to the engine.
func (h *host) InstallDependencies(
	request *pulumirpc.InstallDependenciesRequest,
	server grpc.ServerStreamingServer[pulumirpc.InstallDependenciesResponse],
) error {
	command := exec.CommandContext(server.Context(), "npm", "install", "--no-audit", "--no-fund")
	command.Dir = request.Info.ProgramDirectory
	output, err := command.CombinedOutput()
	if sent := server.Send(&pulumirpc.InstallDependenciesResponse{Stdout: output}); sent != nil {
		return sent
	}
	if err != nil {
		return fmt.Errorf("npm install: %w", err)
	}
	return nil
}

func (h *host) GetProgramDependencies(
	context.Context, *pulumirpc.GetProgramDependenciesRequest,
) (*pulumirpc.GetProgramDependenciesResponse, error) {
	return &pulumirpc.GetProgramDependenciesResponse{}, nil
}

func main() {
	// The engine passes these flags, which this host does not use.
	for _, name := range []string{"tracing", "root", "packagemanager"} {
		flag.String(name, "", "not used")
	}
	flag.Bool("typescript", true, "not used")
	flag.Parse()
	served, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Init: func(server *grpc.Server) error {
			pulumirpc.RegisterLanguageRuntimeServer(server, &host{engine: flag.Arg(0)})
			return nil
		},
	})
	if err == nil {
		fmt.Println(served.Port)
		err = <-served.Done
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pulumi-language-nodejs:", err)
		os.Exit(1)
	}
}
