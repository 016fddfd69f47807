// A program of Kubernetes' own client library: it uses an API server as controllers do, and says what works. Each check
// prints a line "ok NAME"; the first that fails ends the program with code 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

const namespace = "client-go"

type bench struct {
	config *rest.Config
	client kubernetes.Interface
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(err)
	config.QPS, config.Burst = 1000, 1000
	// As controllers do it: bodies are protobuf, answers may be.
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	b := &bench{config: config, client: kubernetes.NewForConfigOrDie(config)}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	_, err = b.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(err)
	for _, check := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"informers", b.informers},
		{"metadata informers", b.metadataInformers},
		{"leader election", b.leaderElection},
		{"server-side apply", b.serverSideApply},
		{"patches", b.patches},
		{"conflicts and retries", b.conflicts},
		{"watch with bookmarks", b.bookmarks},
		{"retry watcher", b.retryWatcher},
		{"too old revisions", b.expired},
		{"pages", b.pages},
		{"dynamic client and discovery", b.dynamic},
		{"events", b.events},
		{"scale, eviction and tokens", b.subresources},
		{"errors by their reason", b.reasons},
	} {
		began := time.Now()
		if err := check.run(ctx); err != nil {
			fmt.Printf("failed %s: %v\n", check.name, err)
			os.Exit(1)
		}
		fmt.Printf("ok %s (%d ms)\n", check.name, time.Since(began).Milliseconds())
	}
}

func must(err error) {
	if err != nil {
		fmt.Printf("failed to begin: %v\n", err)
		os.Exit(1)
	}
}

func (b *bench) maps() typedcore.ConfigMapInterface {
	return b.client.CoreV1().ConfigMaps(namespace)
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": "0"}}
}

func eventually(ctx context.Context, what string, is func() bool) error {
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return is(), nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func isInformed(object any) bool {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	return err == nil && strings.HasPrefix(key, namespace+"/informed-")
}

func (b *bench) informers(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory := informers.NewSharedInformerFactoryWithOptions(b.client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps()
	var added, updated, deleted atomic.Int32
	// Handlers lag behind a synced cache, so that another object of the list may be delivered at any time.
	_, err := informer.Informer().AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: isInformed,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { added.Add(1) },
			UpdateFunc: func(any, any) { updated.Add(1) },
			DeleteFunc: func(any) { deleted.Add(1) },
		},
	})
	if err != nil {
		return err
	}
	pods := factory.Core().V1().Pods().Informer()
	deployments := factory.Apps().V1().Deployments().Informer()
	factory.Start(ctx.Done())
	for kind, isSynced := range factory.WaitForCacheSync(ctx.Done()) {
		if !isSynced {
			return fmt.Errorf("%v did not sync", kind)
		}
	}
	if !pods.HasSynced() || !deployments.HasSynced() {
		return errors.New("pods and deployments did not sync")
	}
	for i := range 50 {
		made, err := b.maps().Create(ctx, configMap(fmt.Sprintf("informed-%d", i)), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		made.Data["n"] = "1"
		if _, err := b.maps().Update(ctx, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if err := eventually(ctx, "50 added and updated", func() bool { return added.Load() == 50 && updated.Load() == 50 }); err != nil {
		return fmt.Errorf("%w (%d added, %d updated)", err, added.Load(), updated.Load())
	}
	one, err := informer.Lister().ConfigMaps(namespace).Get("informed-7")
	if err != nil || one.Data["n"] != "1" {
		return fmt.Errorf("lister has %v: %v", one, err)
	}
	if err := b.maps().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}); err != nil {
		return err
	}
	return eventually(ctx, "50 deleted", func() bool { return deleted.Load() == 50 })
}

func (b *bench) metadataInformers(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := metadata.NewForConfig(b.config)
	if err != nil {
		return err
	}
	if _, err := b.maps().Create(ctx, configMap("meta"), metav1.CreateOptions{}); err != nil {
		return err
	}
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, namespace, nil)
	informer := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps"))
	informer.Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	_, err = informer.Lister().ByNamespace(namespace).Get("meta")
	return err
}

func (b *bench) leaderElection(ctx context.Context) error {
	type leader struct {
		leads  chan struct{}
		cancel context.CancelFunc
		ended  chan struct{}
	}
	begin := func(name string) (leader, error) {
		inner, cancel := context.WithCancel(ctx)
		l := leader{leads: make(chan struct{}), cancel: cancel, ended: make(chan struct{})}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: namespace},
				Client:     b.client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			// Longer than a busy machine may stop us.
			LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 200 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { close(l.leads) },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			cancel()
			return l, err
		}
		go func() {
			defer close(l.ended)
			elector.Run(inner)
		}()
		return l, nil
	}
	first, err := begin("first")
	if err != nil {
		return err
	}
	<-first.leads
	second, err := begin("second")
	if err != nil {
		return err
	}
	select {
	case <-second.leads:
		return errors.New("two leaders at once")
	case <-time.After(time.Second):
	}
	first.cancel()
	<-first.ended
	select {
	case <-second.leads:
	case <-time.After(20 * time.Second):
		return errors.New("nobody took over")
	}
	lease, err := b.client.CoordinationV1().Leases(namespace).Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if *lease.Spec.HolderIdentity != "second" || *lease.Spec.LeaseTransitions != 1 {
		return fmt.Errorf("the lease is held by %s after %d transitions", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
	}
	second.cancel()
	<-second.ended
	return nil
}

func (b *bench) serverSideApply(ctx context.Context) error {
	apply := func(manager, value string, force bool) (*corev1.ConfigMap, error) {
		wanted := applycore.ConfigMap("applied", namespace).WithData(map[string]string{"word": value})
		return b.maps().Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	if _, err := apply("one", "1", false); err != nil {
		return err
	}
	if _, err := apply("two", "2", false); !apierrors.IsConflict(err) {
		return fmt.Errorf("expected a conflict: %v", err)
	}
	made, err := apply("two", "2", true)
	if err != nil {
		return err
	}
	if made.Data["word"] != "2" || len(made.ManagedFields) != 1 || made.ManagedFields[0].Manager != "two" {
		return fmt.Errorf("unexpected owners: %+v", made.ManagedFields)
	}
	extracted, err := applycore.ExtractConfigMap(made, "two")
	if err != nil || extracted.Data["word"] != "2" {
		return fmt.Errorf("extracted %v: %v", extracted, err)
	}
	labels := map[string]string{"app": "applied"}
	container := applycore.Container().WithName("main").WithImage("example.com/main:1")
	deployment := applyapps.Deployment("applied", namespace).WithSpec(applyapps.DeploymentSpec().WithReplicas(0).
		WithSelector(applymeta.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(applycore.PodTemplateSpec().WithLabels(labels).WithSpec(applycore.PodSpec().WithContainers(container))))
	if _, err := b.client.AppsV1().Deployments(namespace).Apply(ctx, deployment, metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		return err
	}
	// A list by key: the other manager's container stays.
	side := applyapps.Deployment("applied", namespace).WithSpec(applyapps.DeploymentSpec().
		WithTemplate(applycore.PodTemplateSpec().WithSpec(applycore.PodSpec().
			WithContainers(applycore.Container().WithName("side").WithImage("example.com/side:1")))))
	both, err := b.client.AppsV1().Deployments(namespace).Apply(ctx, side, metav1.ApplyOptions{FieldManager: "two"})
	if err != nil {
		return err
	}
	if len(both.Spec.Template.Spec.Containers) != 2 {
		return fmt.Errorf("%d containers", len(both.Spec.Template.Spec.Containers))
	}
	return nil
}

func (b *bench) patches(ctx context.Context) error {
	if _, err := b.maps().Create(ctx, configMap("patched"), metav1.CreateOptions{}); err != nil {
		return err
	}
	for kind, body := range map[types.PatchType]string{
		types.StrategicMergePatchType: `{"data":{"strategic":"1"}}`,
		types.MergePatchType:          `{"data":{"merge":"1"}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/data/json","value":"1"}]`,
	} {
		if _, err := b.maps().Patch(ctx, "patched", kind, []byte(body), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	made, err := b.maps().Get(ctx, "patched", metav1.GetOptions{})
	if err != nil || len(made.Data) != 4 {
		return fmt.Errorf("%v: %v", made.Data, err)
	}
	return nil
}

func (b *bench) conflicts(ctx context.Context) error {
	made, err := b.maps().Create(ctx, configMap("counter"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.ResourceVersion = "1"
	if _, err := b.maps().Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("expected a conflict: %v", err)
	}
	var group sync.WaitGroup
	failures := make(chan error, 80)
	backoff := wait.Backoff{Steps: 1000, Duration: 2 * time.Millisecond, Factor: 1, Jitter: 1}
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 10 {
				if err := retry.RetryOnConflict(backoff, func() error {
					now, err := b.maps().Get(ctx, "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					n, _ := strconv.Atoi(now.Data["n"])
					now.Data["n"] = strconv.Itoa(n + 1)
					_, err = b.maps().Update(ctx, now, metav1.UpdateOptions{})
					return err
				}); err != nil {
					failures <- err
				}
			}
		}()
	}
	group.Wait()
	close(failures)
	if err := <-failures; err != nil {
		return err
	}
	after, err := b.maps().Get(ctx, "counter", metav1.GetOptions{})
	if err != nil || after.Data["n"] != "80" {
		return fmt.Errorf("counted %s of 80: %v", after.Data["n"], err)
	}
	return nil
}

func (b *bench) bookmarks(ctx context.Context) error {
	list, err := b.maps().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	seconds := int64(5)
	begun, err := b.maps().Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if err != nil {
		return err
	}
	// Somebody else's change makes the revision go on.
	if _, err := b.client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	marked := ""
	for event := range begun.ResultChan() {
		if event.Type == watch.Bookmark {
			marked = event.Object.(*corev1.ConfigMap).ResourceVersion
		}
	}
	before, _ := strconv.Atoi(list.ResourceVersion)
	after, _ := strconv.Atoi(marked)
	if after <= before {
		return fmt.Errorf("listed at %s, bookmark at %q", list.ResourceVersion, marked)
	}
	return nil
}

func (b *bench) retryWatcher(ctx context.Context) error {
	list, err := b.maps().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	one := int64(1)
	watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			// Ends each second, so that it has to go on where it was.
			options.TimeoutSeconds = &one
			return b.maps().Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	go func() {
		for i := range 10 {
			_, _ = b.maps().Create(ctx, configMap(fmt.Sprintf("watched-%d", i)), metav1.CreateOptions{})
			time.Sleep(250 * time.Millisecond)
		}
	}()
	for i := range 10 {
		select {
		case event := <-watcher.ResultChan():
			if name := event.Object.(*corev1.ConfigMap).Name; name != fmt.Sprintf("watched-%d", i) {
				return fmt.Errorf("event %d is about %s", i, name)
			}
		case <-time.After(10 * time.Second):
			return fmt.Errorf("event %d did not come", i)
		}
	}
	return nil
}

func (b *bench) expired(ctx context.Context) error {
	made, err := b.maps().Create(ctx, configMap("large"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	old := made.ResourceVersion
	// More than is remembered of the past.
	for i := range 150 {
		made.Data["fill"] = strings.Repeat(strconv.Itoa(i%10), 20_000)
		if made, err = b.maps().Update(ctx, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	begun, err := b.maps().Watch(ctx, metav1.ListOptions{ResourceVersion: old})
	if err == nil {
		defer begun.Stop()
		event := <-begun.ResultChan()
		if event.Type != watch.Error {
			return fmt.Errorf("a watch from %s begins with %s", old, event.Type)
		}
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		return fmt.Errorf("not expired: %w", err)
	}
	// Informers list again then.
	_, err = b.maps().List(ctx, metav1.ListOptions{ResourceVersion: old, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		return fmt.Errorf("the list of then is not expired: %w", err)
	}
	return nil
}

func (b *bench) pages(ctx context.Context) error {
	for i := range 30 {
		if _, err := b.maps().Create(ctx, configMap(fmt.Sprintf("page-%02d", i)), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	asked := 0
	seen := map[string]bool{}
	p := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		asked++
		return b.maps().List(ctx, options)
	})
	p.PageSize = 7
	if err := p.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		seen[item.(*corev1.ConfigMap).Name] = true
		return nil
	}); err != nil {
		return err
	}
	if len(seen) < 30 || asked < 5 {
		return fmt.Errorf("%d objects in %d pages", len(seen), asked)
	}
	return nil
}

func (b *bench) dynamic(ctx context.Context) error {
	config := rest.CopyConfig(b.config)
	config.ContentType, config.AcceptContentTypes = "", ""
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(b.client.Discovery()))
	mapping, err := mapper.RESTMapping(schema.GroupKind{Kind: "ConfigMap"})
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "dynamic-"}, "data": map[string]any{"a": "b"},
	}}
	made, err := client.Resource(mapping.Resource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	selector := fields.OneTermEqualSelector("metadata.name", made.GetName()).String()
	list, err := client.Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil || len(list.Items) != 1 {
		return fmt.Errorf("%d items: %v", len(list.Items), err)
	}
	return nil
}

func (b *bench) events(ctx context.Context) error {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: b.client.CoreV1().Events(namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "client-go"})
	about, err := b.maps().Get(ctx, "patched", metav1.GetOptions{})
	if err != nil {
		return err
	}
	for range 3 {
		recorder.Event(about, corev1.EventTypeNormal, "Tried", "three times the same")
	}
	return eventually(ctx, "an event that counts to three", func() bool {
		list, err := b.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=patched,reason=Tried"})
		return err == nil && len(list.Items) == 1 && list.Items[0].Count == 3
	})
}

func (b *bench) subresources(ctx context.Context) error {
	apps := b.client.AppsV1().Deployments(namespace)
	scale, err := apps.GetScale(ctx, "applied", metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = 0
	if _, err := apps.UpdateScale(ctx, "applied", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	deployment, err := apps.Get(ctx, "applied", metav1.GetOptions{})
	if err != nil {
		return err
	}
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation}
	if _, err := apps.UpdateStatus(ctx, deployment, metav1.UpdateOptions{}); err != nil {
		return err
	}
	pods := b.client.CoreV1().Pods(namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "evicted"}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{"none": "such"},
		Containers:   []corev1.Container{{Name: "main", Image: "example.com/main:1"}},
	}}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "evicted", Namespace: namespace}}); err != nil {
		return err
	}
	if _, err := pods.Get(ctx, "evicted", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the evicted pod is there: %v", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"test"}}}
	answer, err := b.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "default", request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	review, err := b.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: answer.Status.Token, Audiences: []string{"test"}},
	}, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		return fmt.Errorf("the token is not authentic: %v", err)
	}
	return nil
}

func (b *bench) reasons(ctx context.Context) error {
	if _, err := b.maps().Get(ctx, "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("not found: %v", err)
	}
	if _, err := b.maps().Create(ctx, configMap("patched"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("already exists: %v", err)
	}
	if _, err := b.maps().Create(ctx, configMap("Bad_Name"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("invalid: %v", err)
	}
	uid := types.UID("other")
	if err := b.maps().Delete(ctx, "patched", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); !apierrors.IsConflict(err) {
		return fmt.Errorf("precondition: %v", err)
	}
	_, err := b.client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("a group that is not served: %v", err)
	}
	return nil
}
